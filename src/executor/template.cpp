#include "executor/template.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>

#include "core/block.h"
#include "core/error.h"
#include "core/files.h"
#include "core/pattern.h"
#include "core/text.h"
#include "executor/batch_executor.h"
#include "executor/gpu_count.h"
#include "executor/tool.h"
#include "trial/program.h"

namespace krigtune::executor {
namespace {

constexpr double kTemplateAnswerS = 60.0;

Block<TemplateSpec> states_block() {
  Block<TemplateSpec> block("Words of the scheduler for a job's state; a word that is not listed counts as running");
  block.key("pending", &TemplateSpec::pending, texts(), "the job waits");
  block.key("held", &TemplateSpec::held, texts(), "the job waits until somebody releases it");
  block.key("running", &TemplateSpec::running, texts(), "the job runs");
  block.key("ended", &TemplateSpec::ended, texts(), "the job has ended; its exit file says how");
  block.key("lost", &TemplateSpec::lost, texts(),
            "the job was lost (node failure, preemption), and the trial is run again");
  return block;
}

void refuse_bad_pattern(JsonObject& object, const char* key, const std::string& pattern, bool wants_group) {
  try {
    const Pattern compiled(pattern);
    if (wants_group && compiled.groups() != 1)
      object.fail(key, "a regular expression with one group was expected",
                  "write for example \"job_state = (\\\\S+)\"");
  } catch (const std::regex_error& error) {
    object.fail(key, fmt::format("is not a regular expression: {}", trouble_with_pattern(error)),
                "write an ECMAScript regular expression");
  }
}

// Returns the group of the first match, or "".
std::string first_group(const std::string& text, const std::string& pattern) {
  SearchLimit limit;
  const auto found = Pattern(pattern).search(text, limit);
  return found ? found->value : "";
}

class TemplateSystem final : public BatchSystem {
 public:
  TemplateSystem(TemplateSpec spec, const Clock& clock)
      : spec_(std::move(spec)),
        clock_(clock),
        finds_by_name_(goes_by_name(spec_.status)),
        cancels_by_name_(goes_by_name(spec_.cancel)) {}

  Submission submit(const JobRequest& request) override {
    const ToolEnd end = ask(spec_.submit, submit_values(request));
    if (end.timed_out) return {Submission::Answer::kLater, "", fmt::format("{} does not answer", spec_.submit.front())};
    if (!end.ok()) {
      return {Submission::Answer::kRefused, "",
              fmt::format("{} refused the job: {}; fix \"submit\" of the executor, or ask for less",
                          spec_.submit.front(), end.complaint())};
    }
    const std::string id = first_group(end.out, spec_.id);
    if (!id.empty()) {
      note_name(id, request.name);
      return {Submission::Answer::kAccepted, id, ""};
    }
    return {Submission::Answer::kRefused, "",
            fmt::format("{} printed no job id that matches \"id\" ({}): {}", spec_.submit.front(), spec_.id,
                        end.complaint())};
  }

  std::optional<std::vector<JobState>> jobs(const std::vector<Asked>& asked) override {
    std::vector<JobState> jobs;
    for (const Asked& one : asked) {
      if (one.id.empty() && !finds_by_name_) continue;
      const ToolEnd end = ask(spec_.status, {{"id", one.id}, {"name", one.name}});
      const bool is_gone = Pattern(spec_.gone).matches(end.out + end.err);
      if (is_gone) continue;
      if (!end.ok()) return std::nullopt;
      const std::string word = first_group(end.out, spec_.state);
      if (word.empty()) continue;
      JobState job = state_of(word);
      job.id = one.id.empty() ? one.name : one.id;
      job.name = one.name;
      note_name(job.id, one.name);
      jobs.push_back(std::move(job));
    }
    return jobs;
  }

  std::optional<JobState> forgotten(const std::string& /*id*/) override { return std::nullopt; }
  bool cancel(const std::string& id) override {
    const ToolEnd end = ask(spec_.cancel, {{"id", id}, {"name", name_of(id)}});
    return end.ok() || Pattern(spec_.gone).matches(end.out + end.err);
  }
  bool take_back(const std::string& id) override { return cancel(id); }
  void cancel_named(const std::string& name) override {
    if (finds_by_name_ && cancels_by_name_) ask(spec_.cancel, {{"id", ""}, {"name", name}});
  }
  std::string objection(const trial::TrialNeeds& /*needs*/, double /*time_limit_s*/) override {
    for (const std::vector<std::string>* argv : {&spec_.submit, &spec_.status, &spec_.cancel}) {
      if (find_program(argv->front(), {}, trial::search_path({})).empty()) {
        return fmt::format("the executor's program '{}' is not on PATH; install it, or write its path", argv->front());
      }
    }
    return "";
  }
  std::vector<std::string> launcher(const std::vector<std::string>& /*argv*/,
                                    const trial::TrialNeeds& needs) const override {
    if (needs.nodes <= 1) return {};
    return filled_words(spec_.launch, sizes(needs));
  }
  std::vector<std::string> broken_nodes(const std::string& /*nodes*/) override { return {}; }
  const char* name() const override { return "batch"; }

 private:
  using Values = std::map<std::string, std::string>;

  // Such a command finds a job whose id was never recorded, because its tuner died while it submitted the job.
  static bool goes_by_name(const std::vector<std::string>& words) {
    const auto has = [&](const char* placeholder) {
      return std::any_of(words.begin(), words.end(),
                         [&](const std::string& word) { return word.find(placeholder) != std::string::npos; });
    };
    return has("{name}") && !has("{id}");
  }

  void note_name(const std::string& id, const std::string& name) {
    const std::lock_guard lock(mutex_);
    names_[id] = name;
  }
  std::string name_of(const std::string& id) {
    const std::lock_guard lock(mutex_);
    const auto found = names_.find(id);
    return found == names_.end() ? "" : found->second;
  }

  static Values sizes(const trial::TrialNeeds& needs) {
    const int nodes = std::max(needs.nodes, 1);
    return {{"nodes", std::to_string(nodes)},
            {"ranks", std::to_string(needs.ranks)},
            {"ranks_per_node", std::to_string((needs.ranks + nodes - 1) / nodes)},
            {"gpus", std::to_string(needs.gpus_per_node)}};
  }

  static Values submit_values(const JobRequest& request) {
    constexpr double kMinuteS = 60.0;
    Values values = sizes(request.needs);
    values["script"] = request.script.string();
    values["name"] = request.name;
    values["directory"] = request.directory.string();
    values["log"] = request.log.string();
    values["minutes"] = std::to_string(static_cast<std::int64_t>(std::ceil(request.time_limit_s / kMinuteS)));
    return values;
  }

  static std::vector<std::string> filled_words(const std::vector<std::string>& words, const Values& values) {
    std::vector<std::string> argv;
    argv.reserve(words.size());
    for (const std::string& word : words) argv.push_back(filled(word, values));
    return argv;
  }

  ToolEnd ask(const std::vector<std::string>& words, const Values& values) const {
    return run_tool(filled_words(words, values), kTemplateAnswerS, clock_);
  }

  JobState state_of(const std::string& word) const {
    JobState job;
    job.word = word;
    job.phase = JobState::Phase::kRunning;
    if (is_one_of(word, spec_.pending) || is_one_of(word, spec_.held)) job.phase = JobState::Phase::kPending;
    if (is_one_of(word, spec_.ended) || is_one_of(word, spec_.lost)) job.phase = JobState::Phase::kEnded;
    if (is_one_of(word, spec_.lost)) job.end = JobState::End::kOther;
    job.never_starts = is_one_of(word, spec_.held);
    if (job.phase == JobState::Phase::kPending) job.reason = word;
    return job;
  }

  const TemplateSpec spec_;
  const Clock& clock_;
  const bool finds_by_name_;
  const bool cancels_by_name_;
  std::mutex mutex_;                          // guards names_
  std::map<std::string, std::string> names_;  ///< by id
};

}  // namespace

std::string filled(const std::string& word, const std::map<std::string, std::string>& values) {
  std::string text;
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t close = word[at] == '{' ? word.find('}', at) : std::string::npos;
    const auto value = close == std::string::npos ? values.end() : values.find(word.substr(at + 1, close - at - 1));
    if (value == values.end()) {
      text += word[at++];
    } else {
      text += value->second;
      at = close + 1;
    }
  }
  return text;
}

namespace {

Block<TemplateSpec> template_block(const std::filesystem::path& /*base_dir*/) {
  Block<TemplateSpec> block("Trials as jobs of any scheduler, which is controlled by its commands");
  const auto command = [&](const char* name, std::vector<std::string> TemplateSpec::*member, const std::string& example,
                           const char* meaning) {
    block.key(name, member, trial::command_words(example), meaning).required();
  };
  command("submit", &TemplateSpec::submit, "[\"qsub\", \"-N\", \"{name}\", \"{script}\"]",
          "the command that submits the job script; placeholders: {script}, {name}, {directory}, {log}, {nodes}, "
          "{ranks}, {ranks_per_node}, {gpus}, {minutes}");
  command("status", &TemplateSpec::status, "[\"qstat\", \"-f\", \"{id}\"]",
          "the command that prints the state of the job {id}; with {name} instead it also finds a job whose submission "
          "was interrupted");
  command("cancel", &TemplateSpec::cancel, "[\"qdel\", \"{id}\"]", "the command that cancels the job {id}, or {name}");
  block.key("id", &TemplateSpec::id, text(),
            "the job's id in the output of submit: a regular expression with one group");
  block.key("state", &TemplateSpec::state, text(),
            "the state in the output of status: a regular expression with one group");
  block.key("gone", &TemplateSpec::gone, text(),
            "what status prints for a job that the scheduler no longer knows: a regular expression");
  block.group("states", states_block());
  block.key("launch", &TemplateSpec::launch, texts(),
            "words before the program of a trial on several nodes, such as [\"mpirun\", \"-np\", \"{ranks}\"]");
  block.key("max_queued", &TemplateSpec::max_queued, integer<int>(from_to(1, 1000)),
            "trials at a time, waiting or running");
  block.key("poll_s", &TemplateSpec::poll_s, number(from_to(0.2, 3600)), "seconds between two rounds of status");
  block.key("pending_limit_s", &TemplateSpec::pending_limit_s, number_or_null(above(0)),
            "seconds after which a waiting job is cancelled (default: no limit)");
  block.key("patience_s", &TemplateSpec::patience_s, number(from_to(0, 3600)),
            "seconds that a job's files may take to appear here after its end");
  block.key(
      "gpus_per_trial", &TemplateSpec::gpus_per_trial, gpus_codec(),
      "GPUs of a trial: a number, a parameter, or an expression as in constraints; \"auto\": those of the cluster");
  block.check([](JsonObject& object, TemplateSpec& spec) {
    refuse_bad_pattern(object, "id", spec.id, true);
    refuse_bad_pattern(object, "state", spec.state, true);
    refuse_bad_pattern(object, "gone", spec.gone, false);
  });
  return block;
}

}  // namespace

ExecutorEntry<TemplateSpec> TemplateSpec::entry() {
  return {{.name = "template"}, template_block, [](const TemplateSpec& spec, const ExecutorJob& job) {
            return make_template_executor(spec, job);
          }};
}

std::unique_ptr<BatchSystem> make_template_system(const TemplateSpec& spec, const Clock& clock) {
  return std::make_unique<TemplateSystem>(spec, clock);
}

std::unique_ptr<trial::Executor> make_template_executor(const TemplateSpec& spec, const ExecutorJob& job) {
  return make_batch_executor(make_template_system(spec, job.clock), batch_options_of(spec, job), job.clock);
}

}  // namespace krigtune::executor
