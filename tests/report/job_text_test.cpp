#include "report/job_text.h"

#include <gtest/gtest.h>

#include "core/json.h"
#include "search/model/job_words.h"

namespace krigtune::job_text_test {

using search::JobAspect;

search::JobSummary summary() {
  search::JobSummary made;
  made.no_step = 0.1 / 3.0;
  made.questions = {{JobAspect::kParameters, {{6869221376.0, "", 0.7}, {13.1e9, "", 0.3 - 0.1 / 3.0}}},
                    {JobAspect::kFramework, {{0.0, "fsdp", 0.25}, {0.0, "megatron", 0.75 - 0.1 / 3.0}}},
                    {JobAspect::kLinks, {{0.25, "", 0.2}, {1.0, "", 0.8 - 0.1 / 3.0}}}};
  return made;
}

// Through text, as in best.json.
std::optional<search::JobSummary> read_back(const search::JobSummary& job) {
  return report::job_from_json(json_or_discarded(report::job_json(job).dump()));
}

TEST(JobText, ReadsBackWhatItWrote) {
  EXPECT_EQ(read_back(summary()), summary());
  search::JobSummary told = summary();
  told.is_told = true;
  told.told_model = 0.125;
  told.questions.insert(told.questions.begin() + 1,
                        {JobAspect::kTrained, {{0.0, "adapters", 0.125}, {0.0, "all", 0.875}}});
  EXPECT_EQ(read_back(told), told);
  EXPECT_EQ(report::job_from_json(report::job_json(std::nullopt)), std::nullopt);
}

TEST(JobText, SaysTheSentenceAndEveryProbability) {
  const Json json = report::job_json(summary());
  EXPECT_EQ(json["sentence"], search::job_sentence(summary()));
  EXPECT_EQ(json["told"], false);
  EXPECT_EQ(json["told_model"], nullptr);
  EXPECT_EQ(json["beliefs"]["parameters"][0]["value"], 6869221376);
  EXPECT_EQ(json["beliefs"]["parameters"][0]["probability"], 0.7);
  EXPECT_EQ(json["beliefs"]["framework"][1]["value"], "megatron");
  EXPECT_EQ(json["beliefs"].size(), 3U);
}

TEST(JobText, IgnoresWhatItDidNotWrite) {
  for (const char* text :
       {"null", "7", "{}", R"({"no_training_step": 0.1})", R"({"no_training_step": 0.1, "told": 1})",
        R"({"no_training_step": 0.1, "told": false, "beliefs": []})",
        R"({"no_training_step": -1, "told": false, "beliefs": {}})",
        R"({"no_training_step": 0.1, "told": false, "beliefs": {"framework": []}})",
        R"({"no_training_step": 0.1, "told": false, "beliefs": {"framework": [{"value": 1, "probability": 1}]}})",
        R"({"no_training_step": 0.1, "told": false, "beliefs": {"links": [{"value": 1}]}})",
        R"({"no_training_step": 0.1, "told": false, "beliefs": {"links": [{"value": "x", "probability": 1}]}})"}) {
    EXPECT_EQ(report::job_from_json(json_or_discarded(text)), std::nullopt) << text;
  }
  EXPECT_TRUE(report::job_from_json(json_or_discarded(R"({"no_training_step": 0.1, "told": false, "beliefs": {}})")));
}

}  // namespace krigtune::job_text_test
