// --warm-start: earlier runs that a new one learns from.
#include <fmt/format.h>

#include "krigtune/core/error.h"
#include "krigtune/core/text.h"
#include "krigtune/tuner/earlier_run.h"
#include "loaded_run.h"

namespace krigtune {
namespace {

constexpr const char* kOption = "warm-start";

std::vector<std::string> sources_of(const EarlierRuns& runs) {
  std::vector<std::string> sources;
  for (const EarlierRun& run : runs) sources.push_back(run.source);
  return sources;
}

std::string sources_text(const std::vector<std::string>& sources) {
  return sources.empty() ? "without --warm-start" : "with --warm-start " + join(sources, " and ");
}

void say_what_is_learned(const Context& context, const Session& session, const EarlierRuns& runs) {
  const MemoryFilter filter(session);
  const auto physics = make_physics_prior(session, filter);
  for (const EarlierRun& run : runs) {
    if (make_warm_start_prior(session, run, physics.get()) == nullptr) {
      context.log.warning(
          fmt::format("--warm-start {}: nothing is to be learned from it: its {} trials contradict what "
                      "is predicted, or follow from none of {}; the search begins without it",
                      run.source, run.trials.size(), join(shared_parameters(session.space, run), ", ")));
      continue;
    }
    context.log.progress(fmt::format("warm start: {} ok trials of {} over {}{}", run.trials.size(), run.source,
                                     join(shared_parameters(session.space, run), ", "),
                                     physics ? ", less what is predicted of them" : ""));
  }
}

}  // namespace

void declare_warm_start(boost::program_options::options_description& options) {
  options.add_options()(kOption, repeated_value_named("DIR"),
                        "learn from an earlier run directory, of this job or another, or from a journal of Optuna's "
                        "(FILE, or FILE:STUDY); may be repeated");
}

EarlierRuns earlier_runs(const Context& context, const Session& session, const std::filesystem::path& directory,
                         bool is_begun) {
  const std::vector<std::string> named = context.arguments.texts(kOption);
  if (is_begun) {
    EarlierRuns recorded = recorded_earlier_runs(directory);
    if (named.empty() || named == sources_of(recorded)) return recorded;
    throw UserError(fmt::format("{}: was begun {}, not {}", directory.string(), sources_text(sources_of(recorded)),
                                sources_text(named)),
                    "leave the option out to go on, or choose another directory");
  }
  EarlierRuns runs;
  for (const std::string& source : named) runs.push_back(read_earlier_run(source, session, "--warm-start"));
  if (!runs.empty()) say_what_is_learned(context, session, runs);
  return runs;
}

}  // namespace krigtune
