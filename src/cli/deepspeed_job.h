#pragma once
#include <string>

#include "command.h"
#include "krigtune/tuner/session.h"

namespace krigtune {

// A DeepSpeed job of the user's as a session: --deepspeed FILE, and the command behind "--".

constexpr const char* kDeepSpeedOption = "deepspeed";
void declare_deepspeed(boost::program_options::options_description& options);

/// Throws UserError where there is a command without --deepspeed.
void refuse_users_command(const Context& context);

/// The session to tune: the operand's, or one made for this machine, with the user's command as its runner. Says what
/// was assumed. Throws UserError: no command, or one that names another file.
Session deepspeed_session_of(const Context& context);

/// The session made for this machine, to be edited, what was assumed above it as comments. Without a command its runner
/// is "none".
std::string deepspeed_session_text(const Context& context);

}  // namespace krigtune
