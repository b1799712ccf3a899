// The registry of runners: it goes over the alternatives of RunnerSpec, each of which has its entry.
#include "runner/runner.h"

#include <fmt/format.h>

#include <type_traits>
#include <vector>

#include "core/block.h"
#include "core/error.h"
#include "core/text.h"

namespace krigtune::runner {
namespace {

// Calls visit(spec) with the defaults of each runner.
template <class Visit, std::size_t... indices>
void for_each_default(const Visit& visit, std::index_sequence<indices...>) {
  (visit(std::variant_alternative_t<indices, RunnerSpec>{}), ...);
}

template <class Visit>
void for_each_runner(const Visit& visit) {
  for_each_default(visit, std::make_index_sequence<std::variant_size_v<RunnerSpec>>());
}

Json kind_is(const char* kind) { return {{"description", "who runs it"}, {"const", kind}}; }

// The first runner is what is meant without "kind".
template <class Spec>
Json shape_of(const trial::RunnerEntry<Spec>& entry, const std::vector<std::string>& known) {
  const bool is_default = std::is_same_v<Spec, std::variant_alternative_t<0, RunnerSpec>>;
  const char* name = entry.traits.name;
  Json block = entry.block({}).schema();
  Json keys = Json::object();
  keys["kind"] = is_default ? schema::word({name}, "who runs it: " + join(known, ", ")) : kind_is(name);
  if (is_default) keys["kind"]["enum"].push_back(nullptr);
  keys.update(block["properties"]);
  block["properties"] = std::move(keys);
  Json condition = {{"properties", {{"kind", kind_is(name)}}}, {"required", {"kind"}}};
  if (is_default) {
    condition = {{"properties", {{"kind", {{"enum", {name, nullptr}}}}}}};
  } else {
    Json required = {"kind"};
    for (const Json& key : block.value("required", Json::array())) required.push_back(key);
    block["required"] = required;
  }
  return {{"if", condition}, {"then", block}};
}

std::vector<std::string> runner_names() {
  std::vector<std::string> names;
  for_each_runner([&]<class Spec>(const Spec&) { names.emplace_back(Spec::entry().traits.name); });
  return names;
}

}  // namespace

trial::RunnerEntry<NoRunner> NoRunner::entry() {
  return {{.name = "none"},
          [](const std::filesystem::path& /*base_dir*/) {
            return Block<NoRunner>("Nobody: trials are run by hand, with krigtune ask and tell");
          },
          [](const NoRunner& /*spec*/, const trial::RunnerJob& /*job*/) -> std::unique_ptr<trial::Runner> {
            throw UserError("/runner/kind: with 'none' nobody runs trials but you",
                            "use krigtune ask and krigtune tell, or name a runner");
          }};
}

trial::RunnerTraits traits_of(const RunnerSpec& spec) {
  return std::visit([]<class Spec>(const Spec&) { return Spec::entry().traits; }, spec);
}

double timeout_s(const RunnerSpec& spec) {
  return std::visit(
      [](const auto& settings) {
        if constexpr (requires { settings.timeout_s; }) {
          return settings.timeout_s;
        } else {
          return 0.0;
        }
      },
      spec);
}

RunnerSpec read_runner(const Json& json, const std::string& source, const std::string& pointer,
                       const std::filesystem::path& base_dir) {
  JsonObject object(json, source, pointer);
  const std::string kind = object.text("kind", runner_names().front());
  std::optional<RunnerSpec> read;
  for_each_runner([&]<class Spec>(Spec spec) {
    const trial::RunnerEntry<Spec> entry = Spec::entry();
    if (kind != entry.traits.name) return;
    entry.block(base_dir).read(object, spec);
    read = std::move(spec);
  });
  if (!read) object.fail("kind", fmt::format("'{}' is no runner", kind), suggestion(kind, runner_names()));
  return *read;
}

Json to_json(const RunnerSpec& spec) {
  return std::visit(
      []<class Spec>(const Spec& settings) {
        const trial::RunnerEntry<Spec> entry = Spec::entry();
        Json json = {{"kind", entry.traits.name}};
        entry.block({}).write(settings, json);
        return json;
      },
      spec);
}

Json runner_schema() {
  const std::vector<std::string> names = runner_names();
  Json kind = schema::with_default(schema::word(names, "the kind"), names.front());
  kind["enum"].push_back(nullptr);
  Json schema = {{"description", "Who runs a trial (default: bench with a workload, none without)"},
                 {"type", "object"},
                 {"properties", {{"kind", kind}}},
                 {"allOf", Json::array()}};
  for_each_runner([&]<class Spec>(const Spec&) { schema["allOf"].push_back(shape_of(Spec::entry(), names)); });
  return schema;
}

void check_runner(const RunnerSpec& spec, const space::Space& space,
                  const std::optional<space::Configuration>& baseline, const JsonObject& block) {
  std::visit(
      [&]<class Spec>(const Spec& settings) {
        const trial::RunnerEntry<Spec> entry = Spec::entry();
        if (entry.check != nullptr) entry.check(settings, space, baseline, block);
      },
      spec);
}

std::unique_ptr<trial::Runner> make_runner(const RunnerSpec& spec, const trial::RunnerJob& job) {
  return std::visit([&]<class Spec>(const Spec& settings) { return Spec::entry().make(settings, job); }, spec);
}

}  // namespace krigtune::runner
