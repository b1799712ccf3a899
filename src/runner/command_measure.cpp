#include "runner/command_measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/files.h"
#include "core/json.h"
#include "deepspeed/job/ds_losses.h"
#include "space/parallel_layout.h"
#include "space/usual_names.h"
#include "space/well_known.h"
#include "trial/job_log.h"
#include "trial/placeholders.h"
#include "trial/program.h"
#include "trial/race.h"

namespace krigtune::runner {
namespace {

constexpr std::int64_t kLeastMeasured = 3;  // a standard error of fewer steps is a guess

double seq_len_of(const space::JobFacts& facts) {
  for (const auto& [name, number] : facts.numbers) {
    if (name == "seq_len") return number;
  }
  return 0.0;
}

// Returns the precision of printed numbers: the largest power of ten of which they are all multiples.
double resolution_of(const std::vector<double>& values) {
  constexpr int kMostDigits = 12;
  double unit = 1.0;
  for (int digits = 0; digits < kMostDigits; ++digits, unit /= 10.0) {
    const auto is_multiple = [&](double value) {
      const double count = value / unit;
      return !std::isfinite(value) || std::abs(count - std::round(count)) <= 1e-6;
    };
    if (std::all_of(values.begin(), values.end(), is_multiple)) return unit;
  }
  return 0.0;
}

// Stores the losses from the first step on, so that the best trial can be compared with the baseline.
void add_losses(const trial::Measurement& read, Json& json) {
  const std::vector<trial::Measure>& metrics = read.spec().metrics;
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    if (metrics[i].name != trial::kLoss) continue;
    const std::vector<double> values = read.step_values(i);
    deepspeed::write_losses({values, resolution_of(values), 1}, json);
  }
}

bool labels_plainly(const std::vector<std::string>& argv) {
  return std::any_of(argv.begin(), argv.end(),
                     [](const std::string& word) { return std::filesystem::path(word).filename() == "srun"; });
}

// Without a workload the number of ranks is unknown, so the batch is only used if the objective needs it.
trial::MeasureFacts facts_of(const CommandJob& job, const space::Configuration& configuration,
                             const std::vector<std::string>& argv) {
  trial::MeasureFacts facts = measure_facts(job.space.facts(), configuration);
  facts.has_plain_labels = labels_plainly(argv);
  if (job.space.facts().well_known) return facts;
  trial::MeasureFacts without = facts;
  without.samples_per_step.reset();
  return trial::Measurement(job.spec.measure, without).can_tell(job.metric) ? without : facts;
}

}  // namespace

trial::MeasureFacts measure_facts(const space::JobFacts& facts, const space::Configuration& configuration) {
  trial::MeasureFacts known;
  known.ranks = static_cast<double>(facts.ranks);
  known.tokens_per_sample = seq_len_of(facts);
  if (facts.train_batch_size) {
    known.samples_per_step = static_cast<double>(*facts.train_batch_size);
    return known;
  }
  const space::Configuration usual = space::in_usual_names(configuration);
  // Without a workload, other names need not be those of a training step.
  if (!(facts.well_known ? usual : configuration).has(space::kMicroBatch)) return known;
  if (const auto dp = space::data_parallel_ranks(facts.ranks, usual)) {
    known.samples_per_step = static_cast<double>(
        space::sequences_of_step(usual.integer(space::kMicroBatch, 1), *dp, usual.integer(space::kAccumulation, 1)));
  }
  return known;
}

trial::MeasureSpec filled_in(const trial::MeasureSpec& spec, const space::Space& space,
                             const space::Configuration& configuration, const trial::TrialFiles& files) {
  const trial::JobNames names(space);
  const trial::NamedValues values = names.values(configuration, {.dir = files.dir.string(),
                                                                 .config = files.config().string(),
                                                                 .result = files.result().string(),
                                                                 .trial = trial_number(files.dir)});
  const auto fill = [&](std::string& text) {
    text = trial::PlaceholderText(text, names.known()).filled(trial::lookup_in(values));
  };
  trial::MeasureSpec filled = spec;
  for (trial::Measure& measure : filled.metrics) {
    fill(measure.from);
    if (measure.times_by.empty()) continue;
    fill(measure.times_by);
    const std::optional<double> factor = trial::printed_number(measure.times_by);
    if (factor.value_or(0.0) > 0.0) measure.times *= *factor;
  }
  for (trial::PrintedCheck& check : filled.checks) fill(check.equals);
  return filled;
}

void refuse_wrong_placeholders(const trial::MeasureSpec& spec, const space::Space& space, const JsonObject& block) {
  const trial::JobNames names(space);
  const auto check = [&](const std::string& key, const std::string& text) {
    try {
      const trial::PlaceholderText parsed(text, names.known());
    } catch (const UserError& error) {
      throw UserError(fmt::format("{}: {}: {}", block.source(), block.pointer(key), error.what()));
    }
  };
  for (const trial::Measure& measure : spec.metrics) {
    check(fmt::format("measure/{}/from", measure.name), measure.from);
    check(fmt::format("measure/{}/times", measure.name), measure.times_by);
  }
  for (std::size_t i = 0; i < spec.checks.size(); ++i) check(fmt::format("checks/{}/equals", i), spec.checks[i].equals);
}

void refuse_unmeasured(const CommandJob& job) {
  trial::MeasureFacts facts = measure_facts(job.space.facts(), {});
  if (!facts.samples_per_step) facts.samples_per_step = 1.0;  // a configuration will determine it
  if (trial::Measurement(job.spec.measure, facts).can_tell(job.metric)) return;
  throw UserError(
      fmt::format("/runner/measure: nothing measures the objective '{}'", job.metric),
      R"(measure it by its name, or "step_time_s", "samples_per_s" or "tokens_per_s", from which it may follow)");
}

CommandMeasure::CommandMeasure(const CommandJob& job, const space::Configuration& configuration,
                               const trial::TrialFiles& files, const trial::ProcessSpec& process, const Clock& clock)
    : job_(job),
      files_(files),
      reader_(filled_in(job.spec.measure, job.space, configuration, files), facts_of(job, configuration, process.argv),
              {files.standard_output(), files.standard_error(), process.working_directory}),
      clock_(clock) {
  std::error_code ignored;  // files of an earlier run of the same trial must not be read as this one's
  for (const auto& old : {files.standard_output(), files.standard_error(), files.dir / "measured.json"}) {
    std::filesystem::remove(old, ignored);
  }
}

void CommandMeasure::watch(trial::ProcessSpec& process, const std::optional<trial::Rival>& rival, bool may_give_up) {
  trial::unbuffer_python(process.environment);
  process.read_up_to = [this](const std::filesystem::path& output) { return reader_.read_up_to(output); };
  process.signs_of_life = [this] { return reader_.bytes_read(); };
  process.enough = [this, rival, may_give_up] {
    return reader_.look() && (is_enough(rival) || (may_give_up && is_in_vain()));
  };
}

// Jobs print hundreds of lines before they train, and some print what is looked for only every so many steps. So a
// trial is ended only on evidence of two kinds. Lines that resemble what is looked for come again and again: then it is
// spelt in another way. Or the job trains, and so long that the steps that are needed cannot be printed within the time
// limit.
bool CommandMeasure::is_in_vain() {
  constexpr std::int64_t kEnough = 20;
  constexpr double kAlikeS = 10.0;  // many ranks may print so many lines at once
  const std::optional<trial::VainSearch> vain = reader_.measurement().vain_search(job_.metric);
  if (!vain) return false;
  const double now_s = clock_.now_s();
  if (vain->alike > 0 && !alike_since_s_) alike_since_s_ = now_s;
  if (vain->steps > 0 && !steps_since_s_) steps_since_s_ = now_s;
  const double longest_s = job_.spec.timeout_s / static_cast<double>(job_.spec.measure.warmup_steps + kLeastMeasured);
  in_vain_ = (vain->alike >= kEnough && now_s - *alike_since_s_ >= kAlikeS) ||
             (vain->steps >= kEnough && now_s - *steps_since_s_ >= longest_s);
  return in_vain_;
}

bool CommandMeasure::is_complete() const {
  return reader_.measurement().steps_of(job_.metric).value_or(0) >= job_.spec.measure.due();
}

bool CommandMeasure::is_enough(const std::optional<trial::Rival>& rival) {
  const trial::Measurement& measured = reader_.measurement();
  if (!measured.fault().empty() || !measured.failed_check().empty() || is_complete()) return true;
  if (!rival || rival->metric != job_.metric || !measured.steps_of(job_.metric)) return false;
  const std::optional<trial::MeasuredValue> so_far = measured.value_of(job_.metric);
  if (so_far) bound_ = trial::bound_of_a_loser({so_far->value, so_far->sem, so_far->steps}, *rival);
  return bound_.has_value();
}

std::string CommandMeasure::why_nothing() const {
  const trial::Measurement& read = reader_.measurement();
  const std::vector<trial::Measure>& metrics = job_.spec.measure.metrics;
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    if (metrics[i].from != trial::kStepsFile || read.matches(i) > 0) return read.why_nothing(job_.metric);
  }
  return "the program reported no step: call krigtune.StepReporter().step() after each, or give the Trainer of Hugging "
         "Face the callback krigtune.transformers.ReportStepsCallback()";
}

CommandResult CommandMeasure::result() const {
  const trial::Measurement& read = reader_.measurement();
  if (!read.failed_check().empty()) {
    return {trial::Failed{trial::FailureReason::kNotApplied, 0, read.failed_check()}, true};
  }
  if (!read.fault().empty()) return {trial::Failed{trial::FailureReason::kBadResult, 0, read.fault()}, true};
  const std::optional<trial::MeasuredValue> value = read.value_of(job_.metric);
  const bool by_steps = value && value->sem >= 0.0 && read.counts_steps(job_.metric);
  if (!value && in_vain_) {
    return {trial::Failed{trial::FailureReason::kBadResult, 0,
                          why_nothing() + "; so the trial was ended (--no-early-end: never)"},
            true};
  }
  if (!value || (by_steps && value->steps < kLeastMeasured)) {
    return {trial::Failed{trial::FailureReason::kBadResult, 0, why_nothing()}, false};
  }
  trial::Measured measured;
  measured.metrics = read.values();
  measured.metrics[job_.metric] = value->value;
  measured.metrics["steps"] = static_cast<double>(value->steps);
  if (value->drift) measured.metrics["drift"] = value->drift->relative;
  measured.value_sem = value->sem;
  if (const auto peak = read.peak_memory()) {
    constexpr double kMost = 1e18;
    if (*peak < kMost) measured.peak_memory = Bytes{std::llround(*peak)};
  }
  return {measured, false};
}

void CommandMeasure::finish(CommandEnd& end) {
  reader_.finish();
  end.measured = result();
  end.is_complete = is_complete();
  end.bound = bound_;
  write_summary(*end.measured);
}

void CommandMeasure::write_summary(const CommandResult& result) const {
  const trial::Measurement& read = reader_.measurement();
  Json json = {{"metrics", Json::object()},
               {"steps", nullptr},
               {"doubts", read.doubts(job_.metric)},
               {"warnings", read.warnings(job_.metric)}};
  for (const auto& [name, value] : read.values()) json["metrics"][name] = json_number(value);
  if (const auto steps = read.steps_of(job_.metric)) json["steps"] = *steps;
  add_losses(read, json);
  if (const auto* failed = std::get_if<trial::Failed>(&result.outcome)) json["failure"] = failed->last_lines;
  write_if_possible(files_.dir / "measured.json", json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace krigtune::runner
