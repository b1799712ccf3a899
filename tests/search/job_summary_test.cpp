// What is believed about a job: marginal probabilities against sums over all hypotheses, and the words for them.
#include "search/model/job_summary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "search/fixtures.h"
#include "search/model/best.h"
#include "search/model/job_words.h"

namespace krigtune::job_summary_test {

using search::JobAnswer;
using search::JobAspect;
using search::JobQuestion;
using search::JobSummary;

session::Session session_with(const std::string& blocks) {
  return session::read_session(parse_json(R"({)" + blocks + R"(, "baseline": null,
      "space": {"zero_stage": [0, 1], "tensor_parallel": [1, 2, 4, 8], "micro_batch": [1, 2, 4, 8]},
      "objective": {"metric": "tokens_per_second"}, "runner": {"kind": "command", "argv": ["true", "{config}"]}})",
                                          "s"),
                               "s", ".");
}

const char* const kCluster =
    R"("cluster": {"nodes": 4, "gpus_per_node": 8, "gpu": "h100-80gb", "interconnect": "nvlink4",
                                            "network": "ib-ndr-400"})";
const char* const kWorkload = R"("workload": {"model": {"layers": 24, "hidden": 2048, "heads": 16, "vocab": 50304,
    "seq_len": 2048}, "precision": "bf16", "framework": "deepspeed", "train_batch_size": 256})";

/// Answers one question about a hypothesis, from the session's point of view.
double number_of(const forecast::Hypotheses& hypotheses, const forecast::Hypothesis& one, JobAspect aspect) {
  const workload::Workload& job = hypotheses.workload(*one.job);
  if (aspect == JobAspect::kParameters) return static_cast<double>(workload::parameter_count(job.model));
  if (aspect == JobAspect::kSequence) return static_cast<double>(job.model.seq_len);
  if (aspect == JobAspect::kBatch) return static_cast<double>(*job.train_batch_size);
  if (aspect == JobAspect::kRanks) return static_cast<double>(hypotheses.cluster(*one.job).ranks());
  return one.link_times;
}

std::string name_of(const forecast::Hypotheses& hypotheses, const forecast::Hypothesis& one, JobAspect aspect) {
  if (aspect == JobAspect::kFramework) return hypotheses.framework_name(*one.job);
  if (aspect == JobAspect::kTrained) return hypotheses.trains_adapters(*one.job) ? "adapters" : "all";
  return "";
}

// Probabilities that differ from hypothesis to hypothesis and have no structure.
Eigen::VectorXd uneven(const forecast::Hypotheses& hypotheses) {
  Eigen::VectorXd probabilities(std::ssize(hypotheses.all()));
  for (Eigen::Index h = 0; h < probabilities.size(); ++h) {
    probabilities(h) = 1.0 + std::sin(7.3 * static_cast<double>(h * h % 101));
  }
  return probabilities / probabilities.sum();
}

// One pass over all hypotheses for each answer, instead of one pass for all.
void expect_sums(const forecast::Hypotheses& hypotheses, const Eigen::VectorXd& probabilities,
                 const std::set<JobAspect>& asked) {
  const JobSummary summary = search::summary_of(hypotheses, probabilities);
  double no_step = 0.0;
  for (std::size_t h = 0; h < hypotheses.all().size(); ++h) {
    if (!hypotheses.all()[h].job) no_step += probabilities(static_cast<Eigen::Index>(h));
  }
  EXPECT_GT(no_step, 0.0);
  EXPECT_NEAR(summary.no_step, no_step, 1e-14);
  std::set<JobAspect> answered;
  for (const JobQuestion& question : summary.questions) {
    answered.insert(question.aspect);
    const bool is_named = search::has_names(question.aspect);
    double all = 0.0;
    for (const JobAnswer& answer : question.answers) {
      double sum = 0.0;
      for (std::size_t h = 0; h < hypotheses.all().size(); ++h) {
        const forecast::Hypothesis& one = hypotheses.all()[h];
        if (!one.job) continue;
        const bool is_it = is_named ? name_of(hypotheses, one, question.aspect) == answer.name
                                    : number_of(hypotheses, one, question.aspect) == answer.number;
        if (is_it) sum += probabilities(static_cast<Eigen::Index>(h));
      }
      EXPECT_NEAR(answer.probability, sum, 1e-12) << search::job_question_text(question.aspect);
      EXPECT_GT(sum, 0.0);
      all += answer.probability;
    }
    EXPECT_NEAR(all, 1.0 - no_step, 1e-12) << search::job_question_text(question.aspect);
    EXPECT_GE(question.answers.size(), 2U);
  }
  EXPECT_EQ(answered, asked);
}

TEST(JobSummary, SumsTheProbabilitiesOfAllHypotheses) {
  const Problem untold(session_with(kCluster), Problem::WithPhysics{});
  const forecast::Hypotheses& hypotheses = *untold.candidates.hypotheses();
  expect_sums(
      hypotheses, uneven(hypotheses),
      {JobAspect::kParameters, JobAspect::kFramework, JobAspect::kSequence, JobAspect::kBatch, JobAspect::kLinks});
  const Problem nothing(session_with(R"("budget": {"trials": 9})"), Problem::WithPhysics{});
  expect_sums(*nothing.candidates.hypotheses(), uneven(*nothing.candidates.hypotheses()),
              {JobAspect::kParameters, JobAspect::kFramework, JobAspect::kSequence, JobAspect::kBatch,
               JobAspect::kRanks, JobAspect::kLinks});
  const Problem told(session_with(std::string(kWorkload) + "," + kCluster), Problem::WithPhysics{});
  expect_sums(*told.candidates.hypotheses(), uneven(*told.candidates.hypotheses()),
              {JobAspect::kParameters, JobAspect::kTrained, JobAspect::kFramework, JobAspect::kLinks});
}

TEST(JobSummary, BeginsWithThePrior) {
  const Problem told(session_with(std::string(kWorkload) + "," + kCluster), Problem::WithPhysics{});
  const JobSummary before = search::summary_before_trials(*told.candidates.hypotheses());
  EXPECT_TRUE(before.is_told);
  EXPECT_NEAR(before.no_step, 0.03, 1e-12);  // docs/search.md, section 2
  EXPECT_NEAR(before.told_model, 0.97 * 0.8, 1e-12);
  const JobQuestion* links = before.find(JobAspect::kLinks);
  ASSERT_NE(links, nullptr);
  EXPECT_EQ(search::likeliest(*links).number, 1.0);
  EXPECT_NEAR(search::likeliest(*links).probability, 0.97 * 0.6, 1e-12);
  EXPECT_EQ(before.find(JobAspect::kSequence), nullptr) << "the session says it";
  const std::optional<JobSummary> without_trials =
      search::job_summary(told.session.objective, told.candidates, search::History());
  ASSERT_TRUE(without_trials);
  EXPECT_NEAR(without_trials->told_model, before.told_model, 1e-12) << "no trial has said anything";
  EXPECT_NEAR(without_trials->no_step, before.no_step, 1e-12);
}

/// A job that the session does not describe.
JobSummary believed() {
  JobSummary summary;
  summary.no_step = 0.04;
  summary.questions = {
      {JobAspect::kParameters,
       {{1.3e9, "", 0.002}, {6.9e9, "", 0.1}, {13.1e9, "", 0.728}, {33e9, "", 0.08}, {76e9, "", 0.05}}},
      {JobAspect::kFramework, {{0, "deepspeed", 0.06}, {0, "fsdp", 0.1}, {0, "megatron", 0.8}}},
      {JobAspect::kSequence, {{2048, "", 0.3}, {4096, "", 0.4}, {8192, "", 0.26}}},
      {JobAspect::kBatch, {{32, "", 0.9}, {128, "", 0.06}}},
      {JobAspect::kLinks, {{0.5, "", 0.1}, {1.0, "", 0.16}, {2.0, "", 0.7}}}};
  return summary;
}

TEST(JobWords, SayWhatIsLikelyAndWhatIsOpen) {
  EXPECT_EQ(
      search::job_sentence(believed()),
      "most likely a dense model of about 13 billion parameters (6.9 to 76), trained as by megatron, over links 2 "
      "times slower than their data; neither told nor clear from the trials: sequence length");
}

TEST(JobWords, SayThatNothingFits) {
  JobSummary summary = believed();
  summary.no_step = 0.6;
  EXPECT_EQ(search::job_sentence(summary), "nothing that the models know: the search goes by the trials alone");
}

TEST(JobWords, SpeakOfAToldJobOnlyIfTheTrialsContradictIt) {
  JobSummary summary;
  summary.is_told = true;
  summary.told_model = 0.06;
  summary.questions = {{JobAspect::kParameters, {{4e9, "", 0.9}, {8e9, "", 0.1}}},
                       {JobAspect::kTrained, {{0, "adapters", 0.04}, {0, "all", 0.96}}}};
  EXPECT_EQ(search::job_sentence(summary), "");
  summary.told_model = 0.04;
  EXPECT_EQ(search::job_sentence(summary),
            "the trials contradict the session: they look like a model of 4.0 billion parameters");
  summary.questions[1].answers[0].probability = 0.9;
  summary.questions[1].answers[1].probability = 0.1;
  EXPECT_NE(search::job_sentence(summary).find("only adapters (LoRA) were trained"), std::string::npos);
}

TEST(JobWords, SayWhatIsAssumedBeforeTheFirstTrial) {
  const Problem nothing(session_with(R"("budget": {"trials": 9})"), Problem::WithPhysics{});
  EXPECT_EQ(search::assumed_job_sentence(search::summary_before_trials(*nothing.candidates.hypotheses())),
            "the session does not describe the model: until trials say more, tune assumes a dense model of 0.4 to 475 "
            "billion "
            "parameters, sequences of 2048 to 32768 tokens, trained as by deepspeed, fsdp, megatron or nanotron, on 8 "
            "to 32 GPUs; to say what it is, give a \"workload\" (docs/howto/unknown_model.md)");
  const Problem told(session_with(std::string(kWorkload) + "," + kCluster), Problem::WithPhysics{});
  EXPECT_EQ(search::assumed_job_sentence(search::summary_before_trials(*told.candidates.hypotheses())), "");
}

TEST(JobWords, ListTheLikeliestFewAnswersAndTheRestTogether) {
  std::vector<std::string> lines;
  std::string last;
  for (const search::JobRow& row : search::job_rows(believed())) {
    lines.push_back((row.question == last ? "" : row.question) + "|" + row.answer + "|" +
                    search::job_probability_text(row.probability));
    last = row.question;
  }
  EXPECT_EQ(lines, (std::vector<std::string>{"model size|13 billion parameters|73 %", "|6.9 billion parameters|10 %",
                                             "|33 billion parameters|8 %", "|others|5 %", "framework|megatron|80 %",
                                             "|fsdp|10 %", "|deepspeed|6 %", "sequence length|4096 tokens|40 %",
                                             "|2048 tokens|30 %", "|8192 tokens|26 %", "batch|32 sequences a step|90 %",
                                             "|128 sequences a step|6 %", "links|2 times slower than their data|70 %",
                                             "|as fast as their data say|16 %", "|2 times faster than their data|10 %",
                                             "none of this|no training step that the models know|4 %"}));
}

TEST(JobWords, DoNotRoundToCertainty) {
  EXPECT_EQ(search::job_probability_text(1.0), "100 %");
  EXPECT_EQ(search::job_probability_text(0.996), "> 99 %");
  EXPECT_EQ(search::job_probability_text(0.004), "< 1 %");
  EXPECT_EQ(search::job_probability_text(0.0), "0 %");
}

}  // namespace krigtune::job_summary_test
