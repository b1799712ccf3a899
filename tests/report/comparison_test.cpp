#include "report/comparison.h"

#include <gtest/gtest.h>

#include <cctype>
#include <cmath>

#include "report/importance_text.h"
#include "report/plot.h"

namespace krigtune::comparison_test {

// Returns what is wrong with the text as XML (unbalanced tags, attributes without quotes, a bare & or <), or "". It
// knows what krigtune's writer uses: elements, attributes, text, entities.
std::string xml_fault(const std::string& text) {
  std::vector<std::string> open;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '&' && text.find(';', at) > at + 6) return "a bare & at " + text.substr(at, 20);
    if (text[at] != '<') {
      ++at;
      continue;
    }
    const std::size_t end = text.find('>', at);
    if (end == std::string::npos) return "a tag without end: " + text.substr(at, 40);
    const std::string tag = text.substr(at + 1, end - at - 1);
    if (tag.find('<') != std::string::npos) return "< within " + tag;
    if (std::count(tag.begin(), tag.end(), '"') % 2 != 0) return "an open quote in " + tag;
    if (tag[0] == '/') {
      if (open.empty() || open.back() != tag.substr(1)) return "ends what is not open: " + tag;
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(tag.substr(0, tag.find(' ')));
    }
    at = end + 1;
  }
  return open.empty() ? "" : "never closed: " + open.back();
}

std::size_t count_of(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

report::Plot plot_of(bool steps) {
  report::Plot plot;
  plot.title = "a < b & \"c\"";
  plot.x = {"trials", 1.0, 5.0};
  plot.y = {"regret", 0.01, 1.0, true};
  plot.steps = steps;
  plot.curves = {{"one", {1.0, 3.0, 5.0}, {1.0, 0.1, 0.0}}, {"two", {1.0, 5.0}, {1.0, 0.1}, {0.5, 0.05}, {1.0, 0.2}}};
  return plot;
}

TEST(PlotSvg, IsWellFormedAndFetchesNothing) {
  const std::string svg = report::plot_svg(plot_of(true));
  EXPECT_EQ(xml_fault(svg), "");
  EXPECT_EQ(xml_fault("<a><b c=\"d\"/>&amp;</a>"), "");
  EXPECT_NE(xml_fault("<a><b></a></b>"), "") << "the check itself";
  EXPECT_NE(xml_fault("<a>b & c, of course</a>"), "");
  EXPECT_NE(svg.find("<title>a &lt; b &amp; &quot;c&quot;</title>"), std::string::npos);
  EXPECT_EQ(svg.find("<script"), std::string::npos);
  EXPECT_EQ(count_of(svg, "http"), 1U) << "the name space alone";
  EXPECT_NE(svg.find("prefers-color-scheme: dark"), std::string::npos);
}

TEST(PlotSvg, PutsPointsWhereTheAxesSay) {
  // The frame is x 84 to 590, y 364 up to 44. 0.1 is in the middle of the logarithmic axis, and 0 is below its end.
  const std::string svg = report::plot_svg(plot_of(false));
  EXPECT_NE(svg.find("<polyline points=\"84.0,44.0 337.0,204.0 590.0,364.0\" class=\"kt-line kt-0 kt-first\"/>"),
            std::string::npos)
      << svg;
  EXPECT_EQ(count_of(svg, "<polygon"), 1U) << "one curve has a band";
  const std::string steps = report::plot_svg(plot_of(true));
  EXPECT_NE(steps.find("<polyline points=\"84.0,44.0 337.0,44.0 337.0,204.0 590.0,204.0 590.0,364.0\""),
            std::string::npos)
      << steps;
}

TEST(AxisTicks, AreRoundNumbersAndNotMoreThanAskedFor) {
  EXPECT_EQ(report::axis_ticks({"", 0.0, 10.0}, 6), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(report::axis_ticks({"", 1.0, 40.0}, 6), (std::vector<double>{10, 20, 30, 40}));
  EXPECT_EQ(report::axis_ticks({"", 0.001, 0.01, true}, 12), (std::vector<double>{0.001, 0.002, 0.005, 0.01}));
  EXPECT_EQ(report::axis_ticks({"", 1e-8, 1.0, true}, 3), (std::vector<double>{1e-8, 1e-5, 1e-2}));
  for (const double max : {1.1, 3.0, 7.7, 40.0, 999.0, 12345.0}) {
    for (const bool logarithmic : {false, true}) {
      const std::vector<double> ticks = report::axis_ticks({"", 1.0, max, logarithmic}, 7);
      EXPECT_LE(ticks.size(), 7U) << max;
      EXPECT_GE(ticks.size(), 1U) << max;
      for (const double tick : ticks) EXPECT_TRUE(tick >= 1.0 - 1e-9 && tick <= max * (1.0 + 1e-9)) << tick;
    }
  }
}

// Bayes reaches the optimum in its second trial; random in its fourth or never (of five); grid runs once.
compare::Comparison compared(int grid_reached = 2) {
  compare::Comparison comparison;
  comparison.optimum = 100.0;
  comparison.optimum_is_known = true;
  const auto add = [&](search::StrategyKind kind, std::uint64_t seed, int reached) {
    for (int trial = 0; trial < 5; ++trial) {
      compare::ComparedTrial row;
      row.strategy = kind;
      row.seed = seed;
      row.trial = trial;
      row.status = "ok";
      row.value = trial + 1 < reached ? 50.0 : 100.0;
      comparison.trials.push_back(row);
    }
  };
  for (std::uint64_t seed = 1; seed <= 6; ++seed) add(search::StrategyKind::kBayes, seed, 2);
  for (std::uint64_t seed = 1; seed <= 6; ++seed) add(search::StrategyKind::kRandom, seed, seed == 6 ? 6 : 4);
  add(search::StrategyKind::kGrid, 1, grid_reached);
  compare::summarise(comparison, {"speed", true, "speed"}, 5);
  return comparison;
}

TEST(ComparisonSentences, SayHowManyTimesFewerTrialsAndHowSureThatIs) {
  const std::vector<std::string> sentences = report::comparison_sentences(compared(), 0.05, 5);
  ASSERT_EQ(sentences.size(), 2U);
  EXPECT_EQ(sentences[0],
            "bayes needs at least 2.2 times fewer trials than random (95 % interval 2.0 to 2.5 times, p = 0.031): 2 "
            "against 4.33 in the mean of 6 seeds; random never came there in 1 of 6, counted as 6 trials");
  EXPECT_EQ(sentences[1],
            "bayes and grid need as many trials, 2 in the mean, the one run paired with each of the 6 of the other");
}

TEST(ComparisonSentences, CountNoRunsOfAStrategyThatRanOnce) {
  const std::string sentence = report::comparison_sentences(compared(6), 0.05, 5).at(1);
  EXPECT_EQ(sentence.rfind("bayes needs at least 3.0 times fewer trials than grid", 0), 0U) << sentence;
  EXPECT_NE(sentence.find("the one run paired with each of the 6 of the other; grid never came there, counted as 6 "),
            std::string::npos)
      << sentence;
}

TEST(ComparisonSvg, HasACurveForEachStrategyAndABandWhereThereAreSeveralRuns) {
  const std::string svg = report::comparison_svg(compared(), "table <1>", 5);
  EXPECT_EQ(xml_fault(svg), "");
  EXPECT_EQ(count_of(svg, "<polyline"), 3U);
  EXPECT_EQ(count_of(svg, "<polygon"), 2U);
  EXPECT_NE(svg.find("median of 6 runs,"), std::string::npos);
  // Regret 0.5 on an axis from 1 to 0.001: log(500) / log(1000) of 320 up from 364. Nothing remains after two of five
  // trials.
  const double y = 364.0 - 320.0 * std::log(500.0) / std::log(1000.0);
  char half[16];
  std::snprintf(half, sizeof half, "%.1f", y);
  EXPECT_NE(svg.find("<polyline points=\"84.0," + std::string(half) + " 210.5," + half + " 210.5,364.0 "),
            std::string::npos)
      << svg;
}

insight::Importance importance_of(std::vector<insight::Effect> effects) {
  insight::Importance importance;
  importance.effects = std::move(effects);
  importance.configurations = 420;
  return importance;
}

TEST(EffectSentences, SayWhatIsClearAndNameTheRest) {
  session::Session session;
  const insight::Effect slow{"micro_batch", std::int64_t{16}, std::int64_t{4}, 1.8, 1.6, 2.0, {}};
  const insight::Effect little{"zero_stage", std::int64_t{1}, std::int64_t{3}, 1.12, 1.08, 1.15, {}};
  const insight::Effect unclear{"overlap_comm", true, false, 1.3, 0.9, 1.7, {false}};
  const insight::Effect faster{"bucket", std::int64_t{1}, std::int64_t{2}, 0.8, 0.7, 0.9, {}};
  EXPECT_EQ(report::effect_sentences(session, importance_of({slow, unclear, little, faster})),
            (std::vector<std::string>{"micro_batch = 4 instead of 16: 1.8 times slower (1.6 to 2.0)",
                                      "zero_stage = 3 instead of 1: takes 12 % longer (8 to 15 %)",
                                      "bucket = 2 instead of 1: is 25 % faster (11 to 43 %)",
                                      "no clear effect of another value there: overlap_comm (true against false)"}));
  session.objective = {"score", true, "score"};
  EXPECT_EQ(report::effect_sentences(session, importance_of({little})).front(),
            "zero_stage = 3 instead of 1: score is 11 % lower (7.4 to 13 %), which is worse");
  session.objective = {"cost", false, "cost"};
  EXPECT_EQ(report::effect_sentences(session, importance_of({little})).front(),
            "zero_stage = 3 instead of 1: cost is 12 % higher (8 to 15 %), which is worse");
}

TEST(PairSentence, NamesWhatDependsOnEachOtherOrTheLargest) {
  insight::Importance importance = importance_of({});
  EXPECT_EQ(report::pair_sentence(importance), "");
  importance.pairs = {{"a", "b", {0.3, 0.2, 0.4}}, {"a", "c", {0.05, 0.001, 0.2}}, {"b", "c", {0.0, 0.0, 0.1}}};
  EXPECT_EQ(report::pair_sentence(importance), "they depend on each other's values: a and b, 0.30 (0.20 to 0.40)");
  importance.pairs.erase(importance.pairs.begin());
  EXPECT_EQ(report::pair_sentence(importance),
            "no two parameters clearly depend on each other's values; the largest interaction is that of a and c, 0.05 "
            "(0.00 to 0.20)");
  EXPECT_EQ(report::pairs_table(importance).rows.size(), 2U);
}

TEST(ImportanceNote, StatesTheErrorOfASample) {
  insight::Importance importance = importance_of({});
  EXPECT_EQ(report::importance_note(importance), "over the 420 configurations that may fit");
  importance.sampled = true;
  importance.sampling_error = 0.0123;
  EXPECT_EQ(report::importance_note(importance),
            "over 420 configurations drawn from those that may fit; drawing others changes them by 0.012");
}

}  // namespace krigtune::comparison_test
