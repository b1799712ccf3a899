#pragma once
#include <vector>

#include "core/json.h"
#include "programs/krigtune/command.h"
#include "session/session.h"

namespace krigtune::cli {

/// A setting of the command that is not a key of the session.
struct RunSetting {
  const char* option;
  Json value;
};

/// Adds --show-config to the options of a command.
void declare_show_config(boost::program_options::options_description& options);

/// Prints the resolved session and where each value came from: as a session file with a comment behind every value, or
/// as a JSON document. `session` is the one that the command would use, with the changes from the command line. Returns
/// the exit code.
int show_config(const Context& context, const session::Session& session, const std::vector<RunSetting>& settings);

/// What a session was read from, and the name of that source as an origin of values.
struct SessionSource {
  Json json;
  std::string name;
};
/// Does the same for a session that was not read from its file.
int show_config(const Context& context, const session::Session& session, const std::vector<RunSetting>& settings,
                const SessionSource& source);

}  // namespace krigtune::cli
