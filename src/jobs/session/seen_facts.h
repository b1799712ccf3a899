#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "jobs/recipe/recipe_job.h"
#include "jobs/session/job_session.h"
#include "session/session.h"

// What can be seen of a job whose model is not known.
namespace krigtune::jobs {

struct SeenFacts {
  std::optional<std::int64_t> ranks;
  std::string missing_ranks;  ///< if there is no number: what the command would have to state, as "--num_gpus N"
  std::int64_t nodes = 1;
  std::string gpu;                 ///< the id of the table, otherwise the driver's name; "": no GPU is seen
  bool is_in_table = false;        ///< the GPU
  std::optional<double> rank_gib;  ///< memory of a rank's GPU
  std::string network;             ///< between nodes; "": not seen
  std::string framework;           ///< as in a session; "": not seen
};

/// Returns one line: what was seen, what is assumed, and what the search infers.
std::string seen_sentence(const SeenFacts& seen);

/// Returns the remark on a job of several nodes, of which only this one is seen. `id`: of the GPU in the table, or "";
/// `network`: between the nodes, or "".
std::string remark_on_nodes(const std::string& gpu, const std::string& id, const std::string& network);

/// Returns the framework that a command names: by its recipe, or by its launcher and that launcher's options. "" if
/// neither says it. Throws like read_command().
std::string framework_named_by(const JobInputs& inputs, const Recipe* recipe);

/// Returns the text of a key; "" if there is none, also where the reader of the session will find something wrong.
std::string text_of_key(const Json& block, const char* key);

/// Returns the request of a session's own command: a runner `command` of a session that says neither what is trained
/// nor where. Without a command if it is no such session.
JobRequest request_of_session(const Json& session, const JobRequest& surroundings);

/// Returns whether the search has expectations of the session's values: they are a speed, and at least one parameter
/// has a name that it knows.
bool predicts_steps(const session::Session& session);

/// Returns whether some values of the block "space" split the model over more ranks than these.
bool splits_over_more(const Json& space, std::int64_t ranks);

}  // namespace krigtune::jobs
