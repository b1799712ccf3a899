#pragma once
#include <optional>
#include <string>
#include <vector>

#include "deepspeed/session/deepspeed_session.h"
#include "programs/krigtune/command.h"

namespace krigtune::cli {

/// What can be said of the machine that a DeepSpeed job runs on.
struct DsWhere {
  deepspeed::DsMachine machine;
  std::string missing;    ///< where the number of ranks is not known: what the command would have to say
  bool is_guess = false;  ///< the command's launcher is not known: its ranks are taken for this node's GPUs
  std::vector<std::string> remarks;
};

/// Looks at this node and the environment, and completes the ranks and nodes of the command, if there is one. Where the
/// job runs on other nodes, they are taken for nodes like this one, with a remark.
DsWhere machine_of_job(const Context& context, std::optional<deepspeed::DsCommand>& command);

}  // namespace krigtune::cli
