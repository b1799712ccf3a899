#pragma once
#include <string>
#include <vector>

#include "search/model/job_summary.h"

namespace krigtune::search {

/// Returns what trials say about a job that the session does not describe: "most likely a dense model of about 13
/// billion parameters (7 to 33), trained as by megatron; neither told nor clear from the trials: sequence length". If
/// the session does, returns a sentence only if the trials contradict it. "" if there is nothing to say.
std::string job_sentence(const JobSummary& summary);
/// Returns the same without what is open.
std::string job_guess(const JobSummary& summary);
/// Returns what is assumed before the first trial of a job that the session does not describe; "" if it does.
std::string assumed_job_sentence(const JobSummary& before_trials);

std::string job_question_text(JobAspect aspect);                         ///< "model size"
std::string job_answer_text(JobAspect aspect, const JobAnswer& answer);  ///< "13 billion parameters"
/// Returns "78 %", "< 1 %" or "> 99 %".
std::string job_probability_text(double probability);

/// A row of the table of what is believed.
struct JobRow {
  std::string question;
  std::string answer;  ///< "others": all that are not listed
  double probability = 0.0;
};
/// Returns the likeliest few answers to each question, the likeliest first, and the probability of no training step.
/// "others" have no row if they are less likely than half a per cent.
std::vector<JobRow> job_rows(const JobSummary& summary);

}  // namespace krigtune::search
