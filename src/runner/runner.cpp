// The registry of runners: it iterates over the alternatives of RunnerSpec, each of which has an entry.
#include "runner/runner.h"

#include "core/error.h"
#include "core/kinds.h"

namespace krigtune::runner {
namespace {

Kinds<RunnerSpec> kinds() {
  return Kinds<RunnerSpec>(
      {"runner", "How a trial is run (default: bench with a workload, otherwise none)", "the kind of runner"});
}

}  // namespace

trial::RunnerEntry<NoRunner> NoRunner::entry() {
  return {{.name = "none"},
          [](const std::filesystem::path& /*base_dir*/) {
            return Block<NoRunner>("You run the trials yourself, with krigtune ask and tell");
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
  return kinds().read(json, source, pointer, base_dir);
}

Json to_json(const RunnerSpec& spec) { return kinds().written(spec); }

Json runner_schema() { return kinds().schema(); }

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
