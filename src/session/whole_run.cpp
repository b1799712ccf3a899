#include "session/whole_run.h"

#include "core/block.h"
#include "core/json.h"

namespace krigtune::session {
namespace {

constexpr double kMostShare = 10.0;  // of the time of steps; more is a mistake
constexpr double kYearInSeconds = 3.2e7;

Block<RunSpec> run_block() {
  Block<RunSpec> block("What the whole training takes beside its steps");
  block.key("checkpoint_s", &RunSpec::checkpoint_s, number_or_null(from_to(0, kYearInSeconds)),
            "seconds that training waits for one checkpoint (default: no checkpoints)");
  block.key("checkpoint_every_s", &RunSpec::checkpoint_every_s, number_or_null(above_up_to(0, kYearInSeconds)),
            "seconds of training between two checkpoints (default: the best interval)");
  block.key("failures_per_gpu_day", &RunSpec::failures_per_gpu_day, number(from_to(0, 1000)),
            "failures that stop the job, for each GPU and day: a week on 100 GPUs with 7 failures is 0.01");
  block.key("restart_s", &RunSpec::restart_s, number(from_to(0, kYearInSeconds)),
            "seconds from a failure until steps go on: noticing it, a new job, loading the checkpoint");
  block.key("evaluation_share", &RunSpec::evaluation_share, number(from_to(0, kMostShare)),
            "time of evaluations over the time of steps");
  block.key("data_wait_share", &RunSpec::data_wait_share, number(from_to(0, kMostShare)),
            "time that steps wait for data over their time");
  block.key("power_w", &RunSpec::power_w, number_or_null(above_up_to(0, 1e5)),
            "mean power of a GPU with its share of the machine, in watts, for the energy");
  block.check([](JsonObject& object, RunSpec& run) {
    if (run.failures_per_gpu_day > 0.0 && !run.checkpoint_s)
      object.fail("checkpoint_s", "is missing: without checkpoints a failure loses everything",
                  "write how long a checkpoint takes, for example 60");
    if (run.checkpoint_every_s && !run.checkpoint_s)
      object.fail("checkpoint_s", "is missing, and there is a checkpoint every so often",
                  "write how long a checkpoint takes, for example 60");
    if (run.checkpoint_s && *run.checkpoint_s == 0.0 && !run.checkpoint_every_s)
      object.fail("checkpoint_every_s", "is missing: checkpoints that take no time have no best interval",
                  "write the seconds between two, for example 1800");
    if (run.checkpoint_s && !run.checkpoint_every_s && run.failures_per_gpu_day == 0.0)
      object.fail("checkpoint_every_s", "is missing: without failures there is no best interval",
                  "write the seconds between two, for example 1800, or \"failures_per_gpu_day\"");
  });
  return block;
}

}  // namespace

RunSpec read_run(const Json& json, const std::string& source, const std::string& pointer) {
  return run_block().value_of(&json, source, pointer);
}

Json to_json(const RunSpec& run) { return run_block().written(run); }
Json run_schema() { return run_block().schema(); }

}  // namespace krigtune::session
