// The registry of runners: it iterates over the alternatives of RunnerSpec, each of which has an entry.
#include "runner/runner.h"

#include <type_traits>

#include "core/error.h"
#include "core/kinds.h"
#include "trial/measure_spec.h"

namespace krigtune::runner {
namespace {

Kinds<RunnerSpec> kinds() {
  return Kinds<RunnerSpec>(
      {"runner", "How a trial is run (default: bench with a workload, otherwise none)", "the kind of runner"});
}

// Asks the settings of the runner, of which not all need to have an answer.
template <class Answer, class Question>
Answer ask(const RunnerSpec& spec, const Question& question, Answer otherwise) {
  return std::visit(
      [&]<class Spec>(const Spec& settings) -> Answer {
        if constexpr (std::is_invocable_v<const Question&, const Spec&>) {
          return question(settings);
        } else {
          return otherwise;
        }
      },
      spec);
}

}  // namespace

trial::RunnerEntry<NoRunner> NoRunner::entry() {
  return {{.name = "none", .by_hand = true},
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

trial::RunnerTraits traits_of_block(const Json& block) {
  if (!block.is_object()) return {};
  const auto kind = block.find("kind");
  if (kind == block.end() || kind->is_null()) return traits_of(RunnerSpec());
  const auto spec = kind->is_string() ? kinds().defaults_of(kind->get<std::string>()) : std::nullopt;
  return spec ? traits_of(*spec) : trial::RunnerTraits();
}

RunnerSpec default_runner(bool has_workload) { return has_workload ? RunnerSpec(BenchSpec()) : RunnerSpec(NoRunner()); }

double timeout_s(const RunnerSpec& spec) {
  return ask(
      spec, [](const auto& settings) -> decltype(settings.timeout_s) { return settings.timeout_s; }, 0.0);
}

std::optional<trial::TrialTime> trial_time(const RunnerSpec& spec) {
  return ask(
      spec, [](const auto& settings) -> decltype(settings.trial_time()) { return settings.trial_time(); },
      std::optional<trial::TrialTime>());
}

bool repeats_exactly(const RunnerSpec& spec) {
  return ask(
      spec, [](const auto& settings) -> decltype(settings.repeats_exactly()) { return settings.repeats_exactly(); },
      false);
}

std::string simulated_machine(const RunnerSpec& spec) {
  return ask(
      spec, [](const auto& settings) -> decltype(settings.machine()) { return settings.machine(); }, std::string());
}

std::optional<std::vector<std::string>> measured_names(const RunnerSpec& spec) {
  std::optional<std::vector<std::string>> own = ask(
      spec, [](const auto& settings) -> decltype(settings.measured_names()) { return settings.measured_names(); },
      std::optional<std::vector<std::string>>());
  if (!traits_of(spec).has_our_fields) return own;
  std::vector<std::string> names;
  for (const trial::Metric& metric : trial::known_metrics()) {
    if (metric.kind != trial::MetricKind::kGoodput) names.emplace_back(metric.field);
  }
  names.insert(names.end(), {trial::kPeakMemory, "exposed_comm_s"});
  if (own) names.insert(names.end(), own->begin(), own->end());
  return names;
}

const CommandSpec* command_of(const RunnerSpec& spec) { return std::get_if<CommandSpec>(&spec); }

const deepspeed::DeepSpeedSpec* ds_job_of(const RunnerSpec& spec) {
  return std::get_if<deepspeed::DeepSpeedSpec>(&spec);
}

const trial::MeasureSpec* measure_of(const RunnerSpec& spec) {
  const CommandSpec* command = command_of(spec);
  return command == nullptr ? nullptr : &command->measure;
}

std::string recipe_of(const RunnerSpec& spec) {
  const CommandSpec* command = command_of(spec);
  return command == nullptr ? "" : command->recipe;
}

std::optional<UsersProgram> users_program(const RunnerSpec& spec) {
  return ask(
      spec,
      [](const auto& settings) -> decltype(UsersProgram{settings.argv, settings.environment}) {
        return {settings.argv, settings.environment};
      },
      std::optional<UsersProgram>());
}

std::optional<Json> config_of(const RunnerSpec& spec, const space::Configuration& configuration,
                              const std::optional<workload::Workload>& workload, const workload::ClusterSpec& cluster,
                              const workload::MemorySpec& memory) {
  const trial::RunnerTraits traits = traits_of(spec);
  if (!traits.reads_config) return std::nullopt;
  if (traits.trains_our_step) return bench_config(workload.value(), cluster, memory, configuration);
  return space::to_json(configuration);
}

std::vector<std::string> bench_command(const RunnerSpec& spec, const std::filesystem::path& bench,
                                       const std::filesystem::path& config, std::int64_t ranks) {
  const auto* own = std::get_if<BenchSpec>(&spec);
  return own == nullptr ? std::vector<std::string>() : own->words(bench, config, ranks);
}

const std::filesystem::path* table_file(const RunnerSpec& spec) {
  const auto* replay = std::get_if<ReplaySpec>(&spec);
  return replay == nullptr ? nullptr : &replay->table;
}

std::shared_ptr<const ReplayTable> read_table(const RunnerSpec& spec, const std::vector<std::string>& parameters,
                                              const std::string& metric, bool maximize) {
  const auto* replay = std::get_if<ReplaySpec>(&spec);
  return replay == nullptr ? nullptr : std::make_shared<const ReplayTable>(*replay, parameters, metric, maximize);
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
