#include "search/model/job_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/text.h"

namespace krigtune::search {
namespace {

constexpr double kLikely = 0.5;

double number_at(const JobQuestion& question, double share, double known) {
  double sum = 0.0;
  for (const JobAnswer& answer : question.answers) {
    sum += answer.probability;
    if (sum >= share * known) return answer.number;
  }
  return question.answers.back().number;
}

std::string billions(double parameters) {
  const double number = parameters / 1e9;
  return number < 10.0 ? fmt::format("{:.1f}", number) : fmt::format("{:.0f}", number);
}

std::string links_text(double times) {
  if (times == 1.0) return "as fast as their data say";
  return times > 1.0 ? fmt::format("{:g} times slower than their data", times)
                     : fmt::format("{:g} times faster than their data", 1.0 / times);
}

// Returns the likeliest answer if it is likely; nullptr otherwise, and if there is nothing to ask.
const JobAnswer* clear_answer(const JobSummary& summary, JobAspect aspect) {
  const JobQuestion* question = summary.find(aspect);
  if (question == nullptr) return nullptr;
  const JobAnswer& best = likeliest(*question);
  return best.probability > kLikely ? &best : nullptr;
}

std::string sizes_text(const JobSummary& summary) {
  const JobQuestion* sizes = summary.find(JobAspect::kParameters);
  if (sizes == nullptr) return "most likely a dense model";
  const double known = 1.0 - summary.no_step;
  const std::string low = billions(number_at(*sizes, 0.05, known));
  const std::string high = billions(number_at(*sizes, 0.95, known));
  return fmt::format("most likely a dense model of about {} billion parameters{}",
                     billions(number_at(*sizes, 0.5, known)), low == high ? "" : fmt::format(" ({} to {})", low, high));
}

std::string still_open(const JobSummary& summary) {
  std::vector<std::string> open;
  for (const JobAspect aspect :
       {JobAspect::kFramework, JobAspect::kSequence, JobAspect::kBatch, JobAspect::kRanks, JobAspect::kRoles}) {
    if (summary.find(aspect) != nullptr && clear_answer(summary, aspect) == nullptr) {
      open.push_back(job_question_text(aspect));
    }
  }
  return open.empty() ? "" : "; neither told nor clear from the trials: " + join(open, ", ");
}

std::string inferred(const JobSummary& summary) {
  if (!is_known_step(summary)) return "nothing that the models know: the search goes by the trials alone";
  std::string text = sizes_text(summary);
  if (const JobAnswer* framework = clear_answer(summary, JobAspect::kFramework)) {
    text += ", trained as by " + framework->name;
  }
  if (const JobAnswer* length = clear_answer(summary, JobAspect::kSequence)) {
    text += fmt::format(", sequences of {}", job_answer_text(JobAspect::kSequence, *length));
  }
  const JobAnswer* links = clear_answer(summary, JobAspect::kLinks);
  if (links != nullptr && links->number != 1.0) text += ", over links " + links_text(links->number);
  if (const JobAnswer* roles = clear_answer(summary, JobAspect::kRoles)) text += ", if " + roles->name;
  return text;
}

// Returns "2048 to 32768 tokens", or the only number.
std::string range_text(const JobQuestion& question) {
  const std::string last = job_answer_text(question.aspect, question.answers.back());
  return fmt::format("{} to {}", number_text(question.answers.front().number), last);
}

std::string names_text(const JobQuestion& question) {
  std::vector<std::string> names;
  for (const JobAnswer& answer : question.answers) names.push_back(answer.name);
  const std::string last = names.back();
  names.pop_back();
  return join(names, ", ") + " or " + last;
}

}  // namespace

std::string job_sentence(const JobSummary& summary) {
  const bool may_be_open = !summary.is_told && is_known_step(summary);
  return job_guess(summary) + (may_be_open ? still_open(summary) : "");
}

std::string job_guess(const JobSummary& summary) {
  if (!summary.is_told) return inferred(summary);
  if (!is_contradicted(summary)) return "";
  const JobAnswer* trained = clear_answer(summary, JobAspect::kTrained);
  if (trained != nullptr && trained->name == "adapters") {
    return "the trials contradict the session: gradients and states take far less memory than a full training, as if "
           "only adapters (LoRA) were trained";
  }
  const JobQuestion* sizes = summary.find(JobAspect::kParameters);
  if (sizes == nullptr) return "the trials contradict the session";
  return fmt::format("the trials contradict the session: they look like a model of {} billion parameters",
                     billions(number_at(*sizes, 0.5, 1.0 - summary.no_step)));
}

std::string assumed_job_sentence(const JobSummary& before_trials) {
  const JobQuestion* sizes = before_trials.find(JobAspect::kParameters);
  if (before_trials.is_told || sizes == nullptr) return "";
  std::string text = fmt::format(
      "the session does not describe the model: until trials say more, tune assumes a dense model of {} to {} "
      "billion parameters",
      billions(sizes->answers.front().number), billions(sizes->answers.back().number));
  if (const JobQuestion* length = before_trials.find(JobAspect::kSequence)) {
    text += ", sequences of " + range_text(*length);
  }
  if (const JobQuestion* framework = before_trials.find(JobAspect::kFramework)) {
    text += ", trained as by " + names_text(*framework);
  }
  if (const JobQuestion* ranks = before_trials.find(JobAspect::kRanks)) text += ", on " + range_text(*ranks);
  return text + "; to say what it is, give a \"workload\" (docs/howto/unknown_model.md)";
}

std::string job_question_text(JobAspect aspect) {
  switch (aspect) {
    case JobAspect::kParameters:
      return "model size";
    case JobAspect::kTrained:
      return "what is trained";
    case JobAspect::kFramework:
      return "framework";
    case JobAspect::kSequence:
      return "sequence length";
    case JobAspect::kBatch:
      return "batch";
    case JobAspect::kRanks:
      return "cluster size";
    case JobAspect::kLinks:
      return "links";
    case JobAspect::kRoles:
      return "meaning of the parameters";
  }
  return "";
}

std::string job_answer_text(JobAspect aspect, const JobAnswer& answer) {
  switch (aspect) {
    case JobAspect::kParameters:
      return billions(answer.number) + " billion parameters";
    case JobAspect::kTrained:
      return answer.name == "adapters" ? "adapters only (LoRA)" : "all parameters";
    case JobAspect::kFramework:
    case JobAspect::kRoles:
      return answer.name;
    case JobAspect::kSequence:
      return number_text(answer.number) + " tokens";
    case JobAspect::kBatch:
      return answer.number == 0.0 ? "varies" : number_text(answer.number) + " sequences a step";
    case JobAspect::kRanks:
      return number_text(answer.number) + " GPUs";
    case JobAspect::kLinks:
      return links_text(answer.number);
  }
  return "";
}

std::string job_probability_text(double probability) {
  if (probability > 0.0 && probability < 0.01) return "< 1 %";
  if (probability < 1.0 && probability > 0.99) return "> 99 %";
  return fmt::format("{:.0f} %", 100.0 * probability);
}

std::vector<JobRow> job_rows(const JobSummary& summary) {
  constexpr std::size_t kMostShown = 3;
  constexpr double kWorthARow = 0.02;
  constexpr double kWorthMentioning = 0.005;
  std::vector<JobRow> rows;
  for (const JobQuestion& question : summary.questions) {
    std::vector<JobAnswer> answers = question.answers;
    std::stable_sort(answers.begin(), answers.end(),
                     [](const JobAnswer& a, const JobAnswer& b) { return a.probability > b.probability; });
    std::size_t shown = 1;
    while (shown < std::min(kMostShown, answers.size()) && answers[shown].probability >= kWorthARow) ++shown;
    if (shown + 1 == answers.size()) shown = answers.size();  // "others" would be only one
    const std::string what = job_question_text(question.aspect);
    double others = 0.0;
    for (std::size_t i = 0; i < answers.size(); ++i) {
      if (i >= shown) {
        others += answers[i].probability;
        continue;
      }
      rows.push_back({what, job_answer_text(question.aspect, answers[i]), answers[i].probability});
    }
    if (others >= kWorthMentioning) rows.push_back({what, "others", others});
  }
  if (!rows.empty()) rows.push_back({"none of this", "no training step that the models know", summary.no_step});
  return rows;
}

}  // namespace krigtune::search
