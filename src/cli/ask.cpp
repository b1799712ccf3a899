// krigtune ask: proposals for who runs trials by hand, or from a program of one's own.
#include <fmt/format.h>

#include <ostream>

#include "command.h"
#include "krigtune/core/error.h"
#include "krigtune/core/json.h"
#include "krigtune/tuner/by_hand.h"
#include "loaded_run.h"
#include "this_machine.h"

namespace krigtune {
namespace {

constexpr std::int64_t kMostAsked = 1'000'000;

void declare_ask(boost::program_options::options_description& options) {
  options.add_options()("session", typed_value_named("SESSION"),
                        "the session file: the first call needs it and makes DIR");
  options.add_options()("count", value_named("N"), "trials to ask (default: 1)");
  options.add_options()("strategy", value_named("NAME"), "as of krigtune tune; decided by the first call");
  options.add_options()("seed", value_named("N"), "the same seed asks the same questions (default: 1); likewise");
  declare_warm_start(options);
}

// The session and how it asks: of the file that is named, else of the directory.
RunRecord record_of(const Context& context, const std::filesystem::path& directory) {
  const Arguments& arguments = context.arguments;
  const bool begun = std::filesystem::exists(session_path(directory));
  const std::optional<std::string> file = arguments.text("session");
  if (!begun && !file) {
    throw UserError(fmt::format("{}: holds no run yet", directory.string()),
                    fmt::format("name its session: krigtune ask {} --session SESSION", directory.string()));
  }
  RunRecord record;
  if (begun) record = load_run(directory);
  // What a session warns of is said once, by the first call: who asks in a loop need not read it every time.
  if (file) record.session = begun ? load_session(*file) : session_of(context, *file);
  record.options.earlier = earlier_runs(context, record.session, directory, begun);
  if (const auto word = arguments.text("strategy"))
    record.options.strategy = strategy_kind_from(*word, arguments.named("strategy"));
  if (const auto seed = arguments.integer("seed", 0, INT64_MAX)) {
    record.options.seed = static_cast<std::uint64_t>(*seed);
  }
  return record;
}

Json trial_json(const Trial& trial) {
  const Proposal& proposal = trial.proposal;
  return {
      {"trial", trial.number},
      {"configuration", to_json(proposal.configuration)},
      {"predicted_value", proposal.predicted_value ? json_number(*proposal.predicted_value) : Json(nullptr)},
      {"predicted_memory_bytes", proposal.predicted_memory ? Json(proposal.predicted_memory->count) : Json(nullptr)}};
}

// A line a trial: a shell reads them with `read` and takes fields out with sed.
std::string trials_document(const std::vector<Trial>& trials) {
  std::string lines;
  for (const Trial& trial : trials)
    lines += fmt::format("{}{}\n", lines.empty() ? "\n" : ",", trial_json(trial).dump());
  return fmt::format("{{\"schema_version\":1,\"trials\":[{}]}}\n", lines);
}

int ask(const Context& context) {
  const auto count = static_cast<int>(context.arguments.integer("count", 1, kMostAsked).value_or(1));
  const std::filesystem::path directory = context.arguments.operand();
  RunRecord record = record_of(context, directory);
  know_this_machine(context, record.session, directory);
  const Prepared prepared(record.session, record.options.earlier);
  const std::vector<Trial> trials =
      ask_by_hand(prepared.session, prepared.candidates, directory, record.options, context.console.clock, count);
  context.console.out << trials_document(trials);
  if (trials.empty()) {
    context.log.error(
        "nothing is left to ask: what the strategy wants was tried, or depends on trials that wait for krigtune tell");
    return ExitCode::kNoResult;
  }
  if (static_cast<int>(trials.size()) < count) {
    context.log.progress(fmt::format("no more than {} of {} are left to ask", trials.size(), count));
  }
  return ExitCode::kDone;
}

}  // namespace

Command ask_command() {
  return {"ask",
          "DIR",
          "Proposes trials for you to run; krigtune tell closes them",
          "The first call names the session and makes DIR; it may be repeated as it is. Prints JSON always:\n"
          "a line with \"schema_version\", then a line for each trial with \"trial\" (its number), \"configuration\",\n"
          "\"predicted_value\" and \"predicted_memory_bytes\" (null: not known).\n"
          "Trial 0 is the session's baseline. The session's budget is not asked. Safe beside other processes\n"
          "that ask, tell or tune in DIR. Exit code 1 when nothing is left.",
          declare_ask,
          ask};
}

}  // namespace krigtune
