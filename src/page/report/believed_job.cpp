// What is believed about the job. Predictions are averages over it.
#include "page/html/html.h"
#include "page/report/sections.h"
#include "search/model/job_words.h"

namespace krigtune::page {

std::string believed_job(const RunFacts& facts) {
  if (!facts.job()) return "";
  HtmlTable beliefs{"What is believed, with its probability after all trials", {"the job", "", "probability"}, {}};
  for (const search::JobRow& row : search::job_rows(*facts.job())) {
    beliefs.rows.push_back(
        {escaped(row.question), escaped(row.answer), escaped(search::job_probability_text(row.probability))});
  }
  if (beliefs.rows.empty()) return "";
  std::string said = search::job_sentence(*facts.job());
  if (said.empty()) said = "The session describes the job, and the trials do not contradict it";
  return paragraph(escaped(sentence(said))) + table(beliefs);
}

}  // namespace krigtune::page
