// What predictions of a session leave out that its model and its recipe do not
// say: parameters that only count as divisors, and environment variables of its
// trials.
#include "jobs/command/command.h"
#include "session/session_blocks.h"
#include "space/well_known.h"
#include "workload/variables.h"

namespace krigtune::session {
namespace {

// Calls `see` for each value that configurations of the session may have.
template <class See>
void for_each_value(const Session &session, const char *name, const See &see) {
  if (const space::Parameter *parameter = session.space.find(name)) {
    for (const space::Value &value : parameter->values)
      see(value);
  } else if (const space::Value *fixed =
                 session.space.facts().fixed.find(name)) {
    see(*fixed);
  }
}

bool may_be(const Session &session, const char *name,
            const space::Value &wanted) {
  bool found = false;
  for_each_value(session, name, [&](const space::Value &value) {
    found = found || value == wanted;
  });
  return found;
}

bool may_reach(const Session &session, const char *name, double least) {
  bool found = false;
  for_each_value(session, name, [&](const space::Value &value) {
    found =
        found || (space::is_number(value) && space::as_number(value) >= least);
  });
  return found;
}

workload::Variables variables_of(const Session &session) {
  const auto of_command = [](const auto &spec) {
    workload::Variables variables;
    if (!spec.argv.empty())
      variables = jobs::variables_of(jobs::read_command(spec.argv));
    variables.insert(variables.end(), spec.environment.begin(),
                     spec.environment.end());
    return variables;
  };
  if (const auto *command = std::get_if<runner::CommandSpec>(&session.runner))
    return of_command(*command);
  if (const auto *job = std::get_if<deepspeed::DeepSpeedSpec>(&session.runner))
    return of_command(*job);
  return {};
}

bool offloads_update(const Session &session) {
  return may_be(session, space::kOffloadOptimizer, std::string("cpu"));
}

} // namespace

void add_caveats(Session &session) {
  if (!session.workload || runner::is<runner::BenchSpec>(session.runner))
    return;
  workload::Caveats &caveats = session.workload->caveats;
  if (may_reach(session, space::kContextParallel, 2.0)) {
    workload::add_once("context parallelism, which only counts as a divisor of "
                       "the ranks: less memory, and other communication",
                       caveats.not_modelled);
  }
  workload::add_variables(variables_of(session), session.workload->framework,
                          offloads_update(session), caveats);
}

} // namespace krigtune::session
