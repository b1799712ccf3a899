// Configurations given by the user: the baseline, and guesses. Missing values are filled in.
#include <fmt/format.h>

#include <algorithm>

#include "core/text.h"
#include "plan/build_plan.h"
#include "schedule/knobs.h"
#include "session/memory_filter.h"
#include "session/session_blocks.h"
#include "space/well_known.h"

namespace krigtune::session {
namespace {

space::Value default_value(const space::Parameter& parameter, bool well_known) {
  const space::WellKnownParameter* known = well_known ? space::find_well_known(parameter.name) : nullptr;
  if (known != nullptr) return known->default_value;
  return parameter.continuous() ? space::Value(parameter.range->min) : parameter.values.front();
}

// Returns the point that `given` means, with the other parameters from `base` or at their defaults.
space::Configuration filled_in(const space::Space& space, const space::Configuration& given,
                               const space::Configuration& base) {
  space::Configuration point;
  for (const space::Parameter& parameter : space.parameters()) {
    const space::Value* value = given.find(parameter.name);
    // If the batch size is fixed, the accumulation follows from the micro-batch.
    const bool is_accumulation = space::well_known_name(parameter.name) == space::kAccumulation;
    if (value == nullptr && is_accumulation && space.facts().train_batch_size) continue;
    if (value == nullptr) value = base.find(parameter.name);
    point.set(parameter.name, value != nullptr ? *value : default_value(parameter, space.facts().well_known));
  }
  return point;
}

const char* kind_of_value(const space::Value& value) {
  if (std::holds_alternative<std::string>(value)) return "text";
  return space::is_number(value) ? "a number" : "true or false";
}

void check_names(const space::Space& space, const space::Configuration& given, const JsonObject& block) {
  const std::vector<std::string> columns = space.columns();
  for (const auto& [name, value] : given) {
    if (const space::Value* fixed = space.facts().fixed.find(name)) {
      if (space::same_value(*fixed, value)) continue;
      block.fail(name, fmt::format("is {}, but fixed at {}", space::to_string(value), space::to_string(*fixed)),
                 "leave it out");
    }
    if (std::find(columns.begin(), columns.end(), name) == columns.end()) {
      block.fail(name, "is not a parameter of the space", suggestion(name, columns));
    }
  }
  // The surrogate's axes and the journal's distributions have a single kind.
  for (const space::Parameter& parameter : space.parameters()) {
    const space::Value* value = given.find(parameter.name);
    if (value == nullptr) continue;
    const space::Value of_the_space = parameter.continuous() ? space::Value(0.0) : parameter.values.front();
    const std::string wanted = kind_of_value(of_the_space);
    if (wanted == kind_of_value(*value)) continue;
    block.fail(parameter.name, fmt::format("{} was expected, not {}", wanted, space::to_json(*value).dump()),
               "write one as in the space");
  }
}

// Derived values are optional, but if given they must equal the derived ones.
void check_derived(const space::Configuration& given, const space::Configuration& completed, const JsonObject& block) {
  const space::Value* stated = given.find(space::kAccumulation);
  const space::Value* derived = completed.find(space::kAccumulation);
  if (stated == nullptr || derived == nullptr || space::same_value(*stated, *derived)) return;
  block.fail(
      space::kAccumulation,
      fmt::format("is {}, but train_batch_size makes it {}", space::to_string(*stated), space::to_string(*derived)),
      "leave it out");
}

// krigtune-bench supports less than the models predict.
void check_modelled(const Session& session, const workload::Workload& workload, const space::Configuration& point) {
  if (runner::traits_of(session.runner).trains_our_step) return schedule::check_knobs(workload, session.cluster, point);
  schedule::check_model(workload);
  schedule::read_knobs(workload, session.cluster, point);
}

// Returns whether a point, which need not be in the lattice, satisfies the constraints.
bool keeps_constraints(const space::Space& space, const space::Configuration& point) {
  std::vector<space::Parameter> fixed = space.parameters();
  for (space::Parameter& parameter : fixed) {
    const space::Value* value = point.find(parameter.name);
    if (value == nullptr) continue;  // it does not exist there
    parameter.range.reset();
    parameter.values = {*value};
  }
  return !space::Space(fixed, space.facts(), space.constraints()).is_empty();
}

// If a constraint fixes the batch, as in a DeepSpeed job of unknown size, a missing accumulation follows from it.
// Otherwise the point is not changed.
void follow_the_batch(const space::Space& space, const space::Configuration& given, space::Configuration& point) {
  const space::Parameter* accumulation = space.find(space::kAccumulation);
  if (accumulation == nullptr || given.has(space::kAccumulation) || keeps_constraints(space, point)) return;
  for (const space::Value& value : accumulation->values) {
    space::Configuration other = point;
    other.set(space::kAccumulation, value);
    if (keeps_constraints(space, other)) {
      point = other;
      return;
    }
  }
}

// Returns the configuration that `block`, a user's object, means in the session; missing values are those of `base` or
// defaults. It may lie outside the space.
space::Configuration completed(const Session& session, const JsonObject& block, const space::Configuration& base) {
  const space::Configuration given = space::configuration_from_json(block.value(), block.source(), block.pointer());
  check_names(session.space, given, block);
  space::Configuration point = filled_in(session.space, given, base);
  const space::Exclusion exclusion = at_key(block, "", [&] { return session.space.complete(point); });
  if (exclusion != space::Exclusion::kNone) {
    block.fail("", fmt::format("{} ({})", space::to_string(exclusion), point.text()),
               "choose a micro_batch whose product with the ranks divides train_batch_size");
  }
  follow_the_batch(session.space, given, point);
  check_derived(given, point, block);
  if (runner::traits_of(session.runner).only_what_is_modelled)
    at_key(block, "", [&] { check_modelled(session, *session.workload, point); });
  return point;
}

void set_default_baseline(Session& session, const JsonObject& root) {
  space::Configuration point = filled_in(session.space, {}, {});
  std::string reason;
  const space::Exclusion exclusion = session.space.complete(point);
  if (exclusion != space::Exclusion::kNone) {
    reason = space::to_string(exclusion);
  } else if (!keeps_constraints(session.space, point)) {
    reason = "it violates a constraint";
  } else if (session.usable_per_rank) {
    const bool fits = at_key(root, "workload", [&] {
      if (runner::traits_of(session.runner).only_what_is_modelled) check_modelled(session, *session.workload, point);
      return MemoryFilter(session).may_fit(point);
    });
    if (!fits) reason = "it does not fit in memory";
  }
  if (reason.empty()) {
    session.baseline = point;
  } else {
    session.warnings.push_back(fmt::format(
        "no baseline is run: {} with every parameter at its default; give \"baseline\" to compare with", reason));
  }
}

}  // namespace

void read_baseline(Session& session, JsonObject& root) {
  const Json* json = root.find("baseline");
  const bool is_null = json == nullptr && root.value().contains("baseline");
  if (is_null) return;
  if (runner::table_file(session.runner) != nullptr) {
    if (json != nullptr)
      session.warnings.push_back("no baseline is run with the runner replay: \"baseline\" is ignored");
    return;
  }
  if (json == nullptr) {
    set_default_baseline(session, root);
  } else {
    session.baseline = completed(session, JsonObject(*json, root.source(), root.pointer("baseline")), {});
  }
}

space::Configuration read_try(const Session& session, const std::string& text, const std::string& where) {
  const Json json = parse_json(text, where);
  const JsonObject block(json, where, "");
  space::Configuration guess = completed(session, block, session.baseline.value_or(space::Configuration()));
  const bool is_ours_to_choose =
      session.space.find(space::kAccumulation) != nullptr && !block.has(space::kAccumulation);
  if (is_ours_to_choose && !keeps_constraints(session.space, guess)) {
    block.fail("", fmt::format("no {} of the space keeps the constraints ({})", space::kAccumulation, guess.text()),
               "choose another micro_batch, or name it too");
  }
  return guess;
}

std::vector<std::string> unplanned_parameters(const space::Space& space) {
  const std::vector<std::string>& planned = schedule::planned_parameters();
  std::vector<std::string> names;
  for (const space::Parameter& parameter : space.parameters()) {
    if (std::find(planned.begin(), planned.end(), parameter.name) == planned.end()) names.push_back(parameter.name);
  }
  return names;
}

// Returns the well-known parameter with that other name, or the nearest name.
std::string hint_for(const std::string& name) {
  const std::string known(space::well_known_name(name));
  return known.empty() ? suggestion(name, schedule::planned_parameters()) : fmt::format("write '{}'", known);
}

// Returns why this job cannot use a value that another job could; throws for one that no job could.
std::optional<schedule::NotModelled> unusable(const Session& session, const workload::Workload& workload,
                                              const space::Configuration& point) {
  const auto knobs = schedule::knobs_of(workload, session.cluster, point);
  const auto* problem = std::get_if<schedule::NotModelled>(&knobs);
  if (problem != nullptr && problem->of_this_job) return *problem;
  check_modelled(session, workload, point);
  return std::nullopt;
}

void leave_out_unusable_values(Session& session, const workload::Workload& workload, const JsonObject& root) {
  std::vector<space::Parameter> parameters = session.space.parameters();
  std::vector<std::string> reasons;
  for (space::Parameter& parameter : parameters) {
    const std::string key = "space/" + parameter.name;
    LeftOut left_out{parameter.name, {}};
    std::optional<schedule::NotModelled> first;
    std::erase_if(parameter.values, [&](const space::Value& value) {
      const auto problem = at_key(root, key, [&] { return unusable(session, workload, {{parameter.name, value}}); });
      if (!problem) return false;
      if (!first) first = problem;
      left_out.values.push_back(value);
      reasons.push_back(problem->what);
      return true;
    });
    if (parameter.values.empty()) root.fail(key, first->what, first->hint);
    if (first) session.left_out.push_back(std::move(left_out));
  }
  if (session.left_out.empty()) return;
  session.space = space::Space(std::move(parameters), session.space.facts(), session.space.constraints());
  session.warnings.push_back("values are left out of the space: " + join(reasons, ", "));
}

// The only knob with a value that cannot be used because of another knob's value.
void add_constraint_of_sequences(Session& session) {
  const auto splits = [](const space::Value& value) { return value == space::Value(true); };
  const space::Value* fixed = session.space.facts().fixed.find(space::kSequenceParallel);
  const space::Parameter* sequence = session.space.find(space::kSequenceParallel);
  const bool may_split =
      fixed != nullptr ? splits(*fixed)
                       : sequence != nullptr && std::any_of(sequence->values.begin(), sequence->values.end(), splits);
  const space::Parameter* tensor = session.space.find(space::kTensorParallel);
  const auto divides = [&](const space::Value& ranks) {
    return session.workload->model.seq_len % space::integer_of(ranks).value_or(1) == 0;
  };
  if (!may_split || tensor == nullptr || std::all_of(tensor->values.begin(), tensor->values.end(), divides)) return;
  std::vector<space::Expression> constraints = session.space.constraints();
  constraints.push_back(space::Expression::parse("!sequence_parallel || seq_len % tensor_parallel == 0"));
  session.space = space::Space(session.space.parameters(), session.space.facts(), std::move(constraints));
}

// Collectives on an emulated network or on the virtual clock are not NCCL's.
bool may_use_nccl(const Session& session) {
  return runner::traits_of(session.runner).trains_our_step && !session.cluster.emulated_network;
}

void keep_planned_values(Session& session, const JsonObject& root) {
  const char* const who = runner::traits_of(session.runner).words.trainer;
  for (const std::string& name : unplanned_parameters(session.space)) {
    const space::WellKnownParameter* known = space::find_well_known(name);
    if (known != nullptr && known->modelling == space::Modelling::kExecuted && may_use_nccl(session)) continue;
    const bool well_known = known != nullptr;
    root.fail("space/" + name, fmt::format("{} does not {} '{}'", who, well_known ? "execute" : "know", name),
              well_known ? "leave it out, or use a runner that does" : hint_for(name));
  }
  // The batch is left open, so that each value is checked by itself while the others cannot cause a refusal.
  workload::Workload workload = *session.workload;
  workload.train_batch_size.reset();
  at_key(root, "workload", [&] { check_modelled(session, workload, {}); });
  for (const space::Parameter& parameter : session.space.parameters()) {
    if (parameter.continuous()) {
      root.fail("space/" + parameter.name, fmt::format("{} takes no real numbers for '{}'", who, parameter.name),
                "list its values");
    }
  }
  leave_out_unusable_values(session, workload, root);
  add_constraint_of_sequences(session);
}

}  // namespace krigtune::session
