#pragma once
#include <vector>

#include "core/json.h"
#include "programs/krigtune/command.h"
#include "session/session.h"

namespace krigtune::cli {

/// A setting of the command that is no key of the session.
struct RunSetting {
  const char* option;
  Json value;
};

/// Adds --show-config to the options of a command.
void declare_show_config(boost::program_options::options_description& options);

/// Prints the session as resolved and where each value came from: as a session file with a comment behind every value,
/// or as a JSON document. `session`: as the command would use it, with what the command line changed. Returns the exit
/// code.
int show_config(const Context& context, const session::Session& session, const std::vector<RunSetting>& settings);

/// What a session was read of, and what that is called as the origin of a value.
struct SessionSource {
  Json json;
  std::string name;
};
/// The same of a session that was not read from its file.
int show_config(const Context& context, const session::Session& session, const std::vector<RunSetting>& settings,
                const SessionSource& source);

}  // namespace krigtune::cli
