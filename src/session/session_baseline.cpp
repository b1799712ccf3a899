// Configurations that the user gives: the baseline, and guesses. What they leave out is filled in.
#include <fmt/format.h>

#include <algorithm>

#include "core/text.h"
#include "plan/build_plan.h"
#include "schedule/knobs.h"
#include "session/memory_filter.h"
#include "session/session_blocks.h"
#include "space/well_known.h"

namespace krigtune {
namespace {

Value default_value(const Parameter& parameter, bool well_known) {
  const WellKnownParameter* known = well_known ? find_well_known(parameter.name) : nullptr;
  if (known != nullptr) return known->default_value;
  return parameter.continuous() ? Value(parameter.range->min) : parameter.values.front();
}

// The point that `given` means, its other parameters as in `base`, or at their defaults.
Configuration filled_in(const Space& space, const Configuration& given, const Configuration& base) {
  Configuration point;
  for (const Parameter& parameter : space.parameters()) {
    const Value* value = given.find(parameter.name);
    // With a batch size to keep, the accumulation follows from the micro-batch.
    if (value == nullptr && parameter.name == kAccumulation && space.facts().train_batch_size) continue;
    if (value == nullptr) value = base.find(parameter.name);
    point.set(parameter.name, value != nullptr ? *value : default_value(parameter, space.facts().well_known));
  }
  return point;
}

const char* kind_of_value(const Value& value) {
  if (std::holds_alternative<std::string>(value)) return "text";
  return is_number(value) ? "a number" : "true or false";
}

void check_names(const Space& space, const Configuration& given, const JsonObject& block) {
  const std::vector<std::string> columns = space.columns();
  for (const auto& [name, value] : given) {
    if (const Value* fixed = space.facts().fixed.find(name)) {
      if (same_value(*fixed, value)) continue;
      block.fail(name, fmt::format("is {}, but fixed at {}", to_string(value), to_string(*fixed)), "leave it out");
    }
    if (std::find(columns.begin(), columns.end(), name) == columns.end()) {
      block.fail(name, "is no parameter of the space", suggestion(name, columns));
    }
  }
  // The surrogate's axes and the journal's distributions are of one kind.
  for (const Parameter& parameter : space.parameters()) {
    const Value* value = given.find(parameter.name);
    if (value == nullptr) continue;
    const Value of_the_space = parameter.continuous() ? Value(0.0) : parameter.values.front();
    const std::string wanted = kind_of_value(of_the_space);
    if (wanted == kind_of_value(*value)) continue;
    block.fail(parameter.name, fmt::format("{} was expected, not {}", wanted, to_json(*value).dump()),
               "write one as in the space");
  }
}

// Derived values are not asked for, but where they are given they must be the derived ones.
void check_derived(const Configuration& given, const Configuration& completed, const JsonObject& block) {
  const Value* stated = given.find(kAccumulation);
  const Value* derived = completed.find(kAccumulation);
  if (stated == nullptr || derived == nullptr || same_value(*stated, *derived)) return;
  block.fail(kAccumulation,
             fmt::format("is {}, but train_batch_size makes it {}", to_string(*stated), to_string(*derived)),
             "leave it out");
}

// krigtune-bench executes less than is predicted.
void check_modelled(const Session& session, const Workload& workload, const Configuration& point) {
  if (is<BenchSpec>(session.runner)) return check_knobs(workload, session.cluster, point);
  check_model(workload);
  read_knobs(workload, session.cluster, point);
}

// Whether the constraints hold at a point, which need not be of the lattice.
bool keeps_constraints(const Space& space, const Configuration& point) {
  std::vector<Parameter> fixed = space.parameters();
  for (Parameter& parameter : fixed) {
    const Value* value = point.find(parameter.name);
    if (value == nullptr) continue;  // it does not exist there
    parameter.range.reset();
    parameter.values = {*value};
  }
  return !Space(fixed, space.facts(), space.constraints()).is_empty();
}

// Where a constraint holds the batch, as in a DeepSpeed job of unknown sizes, an accumulation that is left out follows
// from it. Leaves the point as it is where none does.
void follow_the_batch(const Space& space, const Configuration& given, Configuration& point) {
  const Parameter* accumulation = space.find(kAccumulation);
  if (accumulation == nullptr || given.has(kAccumulation) || keeps_constraints(space, point)) return;
  for (const Value& value : accumulation->values) {
    Configuration other = point;
    other.set(kAccumulation, value);
    if (keeps_constraints(space, other)) {
      point = other;
      return;
    }
  }
}

// The configuration that `block`, an object of the user's, means in the session, with what it leaves out as in `base`
// or at its default. It may lie outside the space.
Configuration completed(const Session& session, const JsonObject& block, const Configuration& base) {
  const Configuration given = configuration_from_json(block.value(), block.source(), block.pointer());
  check_names(session.space, given, block);
  Configuration point = filled_in(session.space, given, base);
  const Exclusion exclusion = at_key(block, "", [&] { return session.space.complete(point); });
  if (exclusion != Exclusion::kNone) {
    block.fail("", fmt::format("{} ({})", to_string(exclusion), point.text()),
               "choose a micro_batch whose product with the ranks divides train_batch_size");
  }
  follow_the_batch(session.space, given, point);
  check_derived(given, point, block);
  if (traits_of(session.runner).only_what_is_modelled)
    at_key(block, "", [&] { check_modelled(session, *session.workload, point); });
  return point;
}

void set_default_baseline(Session& session, const JsonObject& root) {
  Configuration point = filled_in(session.space, {}, {});
  std::string reason;
  const Exclusion exclusion = session.space.complete(point);
  if (exclusion != Exclusion::kNone) {
    reason = to_string(exclusion);
  } else if (!keeps_constraints(session.space, point)) {
    reason = "a constraint does not hold";
  } else if (session.usable_per_rank) {
    const bool fits = at_key(root, "workload", [&] {
      if (traits_of(session.runner).only_what_is_modelled) check_modelled(session, *session.workload, point);
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
  if (is<ReplaySpec>(session.runner)) {
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

Configuration read_try(const Session& session, const std::string& text, const std::string& where) {
  const Json json = parse_json(text, where);
  const JsonObject block(json, where, "");
  Configuration guess = completed(session, block, session.baseline.value_or(Configuration()));
  const bool is_ours_to_choose = session.space.find(kAccumulation) != nullptr && !block.has(kAccumulation);
  if (is_ours_to_choose && !keeps_constraints(session.space, guess)) {
    block.fail("", fmt::format("no {} of the space keeps the constraints ({})", kAccumulation, guess.text()),
               "choose another micro_batch, or name it too");
  }
  return guess;
}

std::vector<std::string> unplanned_parameters(const Space& space) {
  const std::vector<std::string>& planned = planned_parameters();
  std::vector<std::string> names;
  for (const Parameter& parameter : space.parameters()) {
    if (std::find(planned.begin(), planned.end(), parameter.name) == planned.end()) names.push_back(parameter.name);
  }
  return names;
}

// The well-known parameter of that other name, or the nearest name.
std::string hint_for(const std::string& name) {
  const std::string known(well_known_name(name));
  return known.empty() ? suggestion(name, planned_parameters()) : fmt::format("write '{}'", known);
}

// The only knob of which a value is refused because of another's.
void check_sequence_parallel(const Session& session, const Workload& workload, const JsonObject& root) {
  const Parameter* sequence = session.space.find(kSequenceParallel);
  const Parameter* tensor = session.space.find(kTensorParallel);
  if (sequence == nullptr || tensor == nullptr) return;
  for (const Value& split : sequence->values) {
    for (const Value& ranks : tensor->values) {
      at_key(root, "space/" + sequence->name, [&] {
        check_modelled(session, workload, {{sequence->name, split}, {tensor->name, ranks}});
      });
    }
  }
}

void check_planned_parameters(const Session& session, const JsonObject& root) {
  const char* const who = is<BenchSpec>(session.runner) ? "krigtune-bench" : "the virtual clock";
  for (const std::string& name : unplanned_parameters(session.space)) {
    const bool well_known = find_well_known(name) != nullptr;
    root.fail("space/" + name, fmt::format("{} does not {} '{}'", who, well_known ? "execute" : "know", name),
              well_known ? "leave it out, or use a runner that does" : hint_for(name));
  }
  // The batch is left open: each value by itself, the others at what cannot be the reason of a refusal.
  Workload workload = *session.workload;
  workload.train_batch_size.reset();
  at_key(root, "workload", [&] { check_modelled(session, workload, {}); });
  for (const Parameter& parameter : session.space.parameters()) {
    const std::string key = "space/" + parameter.name;
    if (parameter.continuous()) {
      root.fail(key, fmt::format("{} takes no real numbers for '{}'", who, parameter.name), "list its values");
    }
    for (const Value& value : parameter.values) {
      at_key(root, key, [&] { check_modelled(session, workload, {{parameter.name, value}}); });
    }
  }
  check_sequence_parallel(session, workload, root);
}

}  // namespace krigtune
