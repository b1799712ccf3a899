// krigtune doctor --measure: krigtune-bench measures; this file compares the rates with those that plan expects, and
// writes them to a file that sessions can name as "hardware".
#include "programs/krigtune/doctor_measure.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ostream>
#include <sstream>

#include "core/error.h"
#include "core/files.h"
#include "core/text.h"
#include "engine/gpu_probe.h"
#include "machine/compared_rates.h"
#include "machine/hardware_file.h"
#include "programs/krigtune/document.h"
#include "programs/krigtune/plan_tables.h"
#include "programs/krigtune/session_state.h"
#include "runner/local_machine.h"
#include "runner/replay.h"
#include "trial/process.h"
#include "trial/trial_files.h"
#include "workload/rates_cache.h"

namespace krigtune::cli {
namespace {

/// The requested measurement.
struct RatesRequest {
  std::optional<session::Session> session;
  std::optional<std::filesystem::path> file;
};

// Checks the file first, so that a measurement does not fail at its end because the file cannot be written.
void check_rates_file(const std::filesystem::path& file) {
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
  std::error_code error;
  const bool is_folder = std::filesystem::is_directory(file, error);
  if (!is_folder && ::access(folder.c_str(), W_OK) == 0) return;
  throw UserError(fmt::format("--out: '{}' cannot be written", file.string()),
                  is_folder ? "it is a directory; name a file in it" : "choose another folder, or fix its permissions");
}

RatesRequest request_of(const Context& context) {
  RatesRequest wanted;
  if (const auto file = context.arguments.text("session")) wanted.session = session_of(context, *file);
  if (const auto out = context.arguments.text("out")) {
    check_rates_file(*out);
    wanted.file = *out;
  }
  return wanted;
}

constexpr std::array kRankVariables = {"OMPI_COMM_WORLD_RANK", "RANK", "PMIX_RANK", "SLURM_PROCID", "PMI_RANK"};

// Launchers start one copy of this program for each rank; only one of them prints.
bool is_first_process() {
  for (const char* name : kRankVariables) {
    if (const char* rank = std::getenv(name)) return std::string(rank) == "0";
  }
  return true;
}

std::string last_said(const std::filesystem::path& file) {
  std::istringstream in(trial::last_lines(trial::read_tail(file, trial::kMostJobFileBytes)));
  std::string last;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty()) last = line;
  }
  return last;
}

[[noreturn]] void throw_bench_failure(const trial::ProcessResult& result, const std::filesystem::path& errors) {
  std::string why = result.start_error.empty() ? last_said(errors) : result.start_error;
  if (result.timed_out) why = "krigtune-bench --measure-rates took too long";
  if (why.empty()) why = fmt::format("krigtune-bench --measure-rates ended with code {}", result.exit_code);
  if (result.exit_code == BenchExit::kBadInput) throw UserError(why, "");
  throw EnvironmentError(why, "");
}

// Returns nothing if another process of the job has the numbers.
std::optional<workload::MeasuredRates> measure_anew(const Context& context, const RatesRequest& wanted) {
  constexpr double kTimeoutS = 1800.0;
  const std::filesystem::path bench = runner::find_bench(context.console.program);
  if (bench.empty()) {
    throw EnvironmentError("krigtune-bench is neither beside krigtune nor on PATH", "build it: ninja krigtune-bench");
  }
  const trial::ScratchDirectory scratch;
  trial::ProcessSpec spec;
  spec.argv = {bench.string(), "--measure-rates", "--json"};
  if (wanted.session && wanted.session->cluster.is_local()) {
    write_atomically(scratch / "config.json", Json{{"cluster", workload::to_json(wanted.session->cluster)}}.dump());
    spec.argv.insert(spec.argv.end(), {"--config", (scratch / "config.json").string()});
  }
  spec.stdout_file = scratch / "stdout";
  spec.stderr_file = scratch / "stderr";
  spec.timeout_s = kTimeoutS;
  if (is_first_process()) context.log.progress("measuring products, copies and collectives, for some 10 to 60 s");
  const trial::ProcessResult result = trial::run_process(spec, context.console.clock);
  if (result.exit_code != 0 || !result.start_error.empty()) throw_bench_failure(result, spec.stderr_file);
  std::error_code error;
  if (std::filesystem::file_size(spec.stdout_file, error) == 0) return std::nullopt;
  return workload::read_measured_rates(load_json(spec.stdout_file), "krigtune-bench --measure-rates");
}

bool is_started_by_a_launcher() {
  return std::any_of(kRankVariables.begin(), kRankVariables.end(),
                     [](const char* name) { return std::getenv(name) != nullptr; });
}

// The GPUs of this machine that would be measured, where the same ones give the same rates.
std::optional<workload::GpuKey> gpus_of(const Context& context, const RatesRequest& wanted) {
  const engine::GpuProbe probe = engine::probe_gpus();
  const bool is_used = engine::no_cuda_reason(runner::find_bench(context.console.program)).empty();
  if (is_started_by_a_launcher() || probe.gpus == 0 || !is_used) return std::nullopt;
  std::int64_t ranks = probe.gpus;
  if (wanted.session && wanted.session->cluster.is_local()) {
    const workload::ClusterSpec& cluster = wanted.session->cluster;
    if (cluster.emulated_network || cluster.ranks() > probe.gpus) return std::nullopt;
    ranks = cluster.ranks();
  }
  return workload::GpuKey{probe.name, workload::driver_version(probe.driver_version), ranks};
}

void keep(const Context& context, const workload::GpuKey& gpus, const workload::MeasuredRates& rates) {
  if (rates.device != "cuda" || rates.ranks() != gpus.ranks || cache_directory().empty()) return;
  try {
    workload::keep_rates(cache_directory(), gpus, {rates, local_iso_time(context.console.clock.unix_us())});
  } catch (const std::exception& error) {
    context.log.warning(fmt::format(
        "what was measured is not kept: {}; set KRIGTUNE_CACHE to a directory that can be written", error.what()));
  }
}

// Of GPUs of this machine: what was kept, but for --fresh.
std::optional<workload::MeasuredRates> measured_rates(const Context& context, const RatesRequest& wanted) {
  const std::optional<workload::GpuKey> gpus = gpus_of(context, wanted);
  if (gpus && !context.arguments.flag("fresh")) {
    if (const auto kept = workload::kept_rates(cache_directory(), *gpus)) {
      context.log.progress(fmt::format("these are the rates of {}; --fresh measures again", kept->measured_at));
      return kept->rates;
    }
  }
  std::optional<workload::MeasuredRates> rates = measure_anew(context, wanted);
  if (gpus && rates) keep(context, *gpus, *rates);
  return rates;
}

workload::Precision rates_precision(const RatesRequest& wanted, const workload::MeasuredRates& rates) {
  if (wanted.session && wanted.session->workload) return wanted.session->workload->precision;
  return rates.device == "cuda" ? workload::Precision::kBf16 : workload::Precision::kFp32;
}

/// The rates that plan would use, and their source.
struct ExpectedRates {
  std::optional<workload::ClusterSpec> cluster;
  std::string by;  ///< "the table's h100-80gb, nvlink4, ib-ndr-400", or why there is no cluster
};

std::string cluster_name(const workload::ClusterSpec& cluster) {
  std::string name = fmt::format("the table's {}", cluster.device->id);
  if (cluster.gpus_per_node > 1) name += ", " + cluster.network->intra.name;
  if (cluster.nodes > 1) name += ", " + cluster.network->inter.name;
  return name;
}

ExpectedRates expected_of_cpus(const RatesRequest& wanted, const workload::MeasuredRates& rates) {
  workload::ClusterSpec cluster;
  if (wanted.session) {
    cluster = wanted.session->cluster;
  } else {
    cluster.nodes = static_cast<std::int64_t>(rates.hosts.size());
    cluster.gpus_per_node = rates.ranks_per_node();
  }
  std::vector<std::string> by;
  const workload::Precision precision = rates_precision(wanted, rates);
  const workload::MeasuredMachine* in_file =
      cluster.hardware ? cluster.hardware->measured(cluster.ranks(), precision) : nullptr;
  if (in_file != nullptr) {
    cluster.measured = *in_file;
    by.emplace_back("the session's \"hardware\"");
  } else if (rates.ranks() == cluster.ranks()) {
    cluster.measured = runner::earlier_local_machine(cluster.ranks(), precision, cache_directory());
    if (cluster.measured) by.emplace_back("this machine as it was measured earlier");
  }
  if (cluster.emulated_network) by.push_back("the emulated network " + cluster.emulated_network->name);
  if (by.empty()) return {std::nullopt, "these ranks were not measured before, and there is no table of CPUs"};
  return {cluster, join(by, " and ")};
}

ExpectedRates expected_of(const RatesRequest& wanted, const workload::MeasuredRates& rates) {
  if (wanted.session && wanted.session->cluster.device) {
    const workload::ClusterSpec& cluster = wanted.session->cluster;
    if (rates.device != "cuda") {
      throw EnvironmentError(
          fmt::format("the session's GPU is {}, and here only CPU ranks could be measured", cluster.gpu),
          "start this where the GPUs are, or name a session with \"gpu\": \"local\"");
    }
    return {cluster, cluster_name(cluster)};
  }
  if (rates.device != "cuda") return expected_of_cpus(wanted, rates);
  const auto network = machine::network_id_of("/");
  if (auto cluster = machine::usual_cluster(rates, network)) return {cluster, cluster_name(*cluster)};
  return {std::nullopt, fmt::format("the table does not have {}{}", rates.processor,
                                    rates.hosts.size() > 1 && !network ? ", or this network" : "")};
}

// Measures CPU ranks with the program that measures them for every session, and stores the result in its cache, too.
std::vector<workload::MeasuredMachine> local_machines(const Context& context, const RatesRequest& wanted,
                                                      const workload::MeasuredRates& rates) {
  const bool on_this_machine = rates.hosts.size() == 1 || !rates.emulated_network.empty();
  std::vector<workload::MeasuredMachine> machines;
  if (rates.device == "cuda" || !on_this_machine) return machines;
  std::vector<workload::Precision> precisions = {workload::Precision::kFp32, workload::Precision::kBf16,
                                                 workload::Precision::kFp16};
  if (wanted.session && wanted.session->workload) precisions = {wanted.session->workload->precision};
  runner::LocalMachineOptions options;
  options.bench = runner::find_bench(context.console.program);
  options.cache = cache_directory();
  options.fresh = true;
  options.say = [&log = context.log](const std::string& text) { log.progress(text); };
  for (const workload::Precision precision : precisions) {
    machines.push_back(runner::local_machine(rates.ranks(), precision, options, context.console.clock));
  }
  return machines;
}

/// The complete report.
struct RatesReport {
  workload::MeasuredRates rates;
  ExpectedRates expected;
  std::vector<machine::ComparedRate> compared;
  std::vector<std::string> warnings;
  std::optional<machine::MeasuredHardware> hardware;  ///< if a file is written or JSON printed
};

Json rate_json(const machine::ComparedRate& rate) {
  return {{"what", rate.what},         {"at", rate.at},           {"unit", rate.unit},      {"measured", rate.measured},
          {"expected", rate.expected}, {"is_time", rate.is_time}, {"is_slow", rate.is_slow}};
}

Json rates_document(const RatesReport& measured, const RatesRequest& wanted) {
  Json json = new_document("doctor");
  json["rates"] = workload::to_json(measured.rates);
  json["expected_by"] = measured.expected.by;
  json["compared"] = Json::array();
  for (const machine::ComparedRate& rate : measured.compared) json["compared"].push_back(rate_json(rate));
  json["warnings"] = measured.warnings;
  json["hardware"] = machine::hardware_file(*measured.hardware);
  json["file"] = wanted.file ? Json(wanted.file->string()) : Json(nullptr);
  return json;
}

std::string compared_text(const RatesReport& measured) {
  if (!measured.expected.cluster) return fmt::format("#\n# not compared: {}\n", measured.expected.by);
  std::string text = fmt::format("#\n# compared with what plan expects of {}\n#\n", measured.expected.by);
  text += fmt::format("# {:<34}  {:>20}  {:>10}  {:>10}\n", "what", "at", "measured", "expected");
  for (const machine::ComparedRate& rate : measured.compared) {
    text += fmt::format("{} {:<34}  {:>20}  {:>10.4g}  {:>10.4g} {}\n", rate.is_slow ? "!" : " ", rate.what, rate.at,
                        rate.measured, rate.expected, rate.unit);
  }
  return text + "#\n";
}

std::string fitted_links_text(const machine::MeasuredHardware& hardware) {
  std::string text;
  for (const auto* fitted : {&hardware.intra, &hardware.inter}) {
    if (!*fitted) continue;
    const workload::Link& link = (*fitted)->link;
    text += fmt::format(
        "{}: collectives reach {:.3g} GB/s with a latency of {:.3g} us; measured times differ from that by {:.0f} % on "
        "average\n",
        link.id, link.bytes_per_s * link.reached / 1e9, workload::microseconds(link.latency_s),
        100.0 * std::expm1((*fitted)->mean_log_error));
  }
  return text;
}

void print_measured(const Context& context, const RatesReport& measured, const RatesRequest& wanted) {
  std::ostream& out = context.console.out;
  out << workload::rates_text(measured.rates) << compared_text(measured);
  for (const std::string& warning : measured.warnings) out << "WARN  " << wrapped(warning, 6);
  if (measured.warnings.empty() && measured.expected.cluster) out << "OK    nothing is clearly slower than expected\n";
  if (!wanted.file) return;
  out << fitted_links_text(*measured.hardware);
  const Json cluster = machine::cluster_using(*measured.hardware, measured.rates, wanted.file->string());
  out << wrapped(fmt::format("{} is written; a session uses it with", wanted.file->string()), 2)
      << "  \"cluster\": " << cluster.dump() << "\n";
}

std::vector<std::string> rate_warnings(const RatesReport& measured) {
  std::vector<std::string> warnings;
  for (const machine::ComparedRate& rate : measured.compared) {
    if (rate.is_slow) warnings.push_back(machine::sentence_of(rate, measured.rates));
  }
  if (const auto slow = machine::slow_rank(measured.rates)) warnings.push_back(machine::sentence_of(*slow));
  return warnings;
}

}  // namespace

void declare_measuring(boost::program_options::options_description& options) {
  options.add_options()(
      "measure",
      "measure matrix products, copies and collectives, on all ranks if a launcher starts this program on all");
  options.add_options()("fresh", "with --measure: measure GPUs again that were measured before");
  options.add_options()("out", typed_value_named("FILE"),
                        "with --measure: write what was measured as a file that sessions name as \"hardware\"");
  options.add_options()("session", typed_value_named("SESSION"),
                        "with --measure: compare with this session's cluster, and measure its CPU ranks");
}

void check_measuring(const Arguments& arguments) {
  if (arguments.flag("measure")) return;
  if (arguments.flag("fresh")) throw UserError("--fresh without --measure", "krigtune doctor --measure --fresh");
  for (const char* name : {"out", "session"}) {
    if (arguments.text(name)) {
      throw UserError(fmt::format("--{} without --measure", name),
                      fmt::format("krigtune doctor --measure --{} ...", name));
    }
  }
}

int measure_rates_of_machine(const Context& context) {
  const RatesRequest wanted = request_of(context);
  std::optional<workload::MeasuredRates> rates = measured_rates(context, wanted);
  if (!rates) return ExitCode::kDone;
  RatesReport measured;
  measured.rates = std::move(*rates);
  measured.expected = expected_of(wanted, measured.rates);
  if (measured.expected.cluster) {
    measured.compared = machine::compare_rates(measured.rates, *measured.expected.cluster);
  }
  measured.warnings = rate_warnings(measured);
  const bool json = context.arguments.flag("json");
  if (wanted.file || json) {
    const workload::Precision precision = rates_precision(wanted, measured.rates);
    measured.hardware = machine::fit_hardware(measured.rates, measured.expected.cluster, precision);
    measured.hardware->local = local_machines(context, wanted, measured.rates);
  }
  if (wanted.file) write_atomically(*wanted.file, machine::hardware_file(*measured.hardware).dump(2) + "\n");
  if (json) {
    print(context, rates_document(measured, wanted));
  } else {
    print_measured(context, measured, wanted);
  }
  return ExitCode::kDone;
}

}  // namespace krigtune::cli
