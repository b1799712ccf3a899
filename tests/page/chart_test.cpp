#include "page/chart/chart.h"

#include <gtest/gtest.h>

#include <sstream>

#include "html_reader.h"

namespace krigtune::chart_test {

using page::Chart;

std::vector<double> numbers_after(const std::string& html, const std::string& before) {
  std::vector<double> numbers;
  for (std::size_t at = html.find(before); at != std::string::npos; at = html.find(before, at + 1)) {
    numbers.push_back(std::stod(html.substr(at + before.size())));
  }
  return numbers;
}

Chart three_dots() {
  Chart chart;
  chart.title = "Dots & <lines>";
  chart.description = "\"three\"";
  chart.x = {.title = "x", .min = 0.0, .max = 10.0};
  chart.y = {.title = "y", .min = 1.0, .max = 100.0, .logarithmic = true};
  chart.marks = {
      {"dots", page::Shape::kDot, 0, {{.x = 0.0, .y = 1.0}, {.x = 5.0, .y = 10.0}, {.x = 10.0, .y = 100.0}}}};
  return chart;
}

TEST(Chart, PlacesMarksOnTheirAxes) {
  const std::string html = page::chart(three_dots());
  const HtmlReader read(html);
  ASSERT_EQ(read.fault(), "");
  const std::vector<double> x = numbers_after(html, "cx=\"");
  const std::vector<double> y = numbers_after(html, "cy=\"");
  ASSERT_EQ(x.size(), 4U) << "three dots, and the legend's";
  EXPECT_NEAR(x[1], 0.5 * (x[0] + x[2]), 0.1);
  EXPECT_NEAR(y[1], 0.5 * (y[0] + y[2]), 0.1) << "a decade each";
  EXPECT_LT(y[2], y[0]) << "larger is higher";
}

TEST(Chart, HoldsWhatLiesOutsideAtItsEdge) {
  Chart chart = three_dots();
  chart.marks.front().marks = {{.x = -5.0, .y = 0.1}, {.x = 50.0, .y = 1e9}};
  const std::vector<double> outside = numbers_after(page::chart(chart), "cx=\"");
  const std::vector<double> ends = numbers_after(page::chart(three_dots()), "cx=\"");
  EXPECT_EQ(outside[0], ends[0]);
  EXPECT_EQ(outside[1], ends[2]);
}

// Both edges of a band keep their values until the next point, so no edge is slanted.
TEST(Chart, BandsStepAsTheirLinesDo) {
  Chart chart = three_dots();
  chart.lines = {{.name = "a",
                  .x = {0.0, 5.0, 10.0},
                  .y = {50.0, 20.0, 5.0},
                  .steps = true,
                  .low = {40.0, 10.0, 2.0},
                  .high = {60.0, 30.0, 9.0}}};
  const std::string html = page::chart(chart);
  const std::size_t begin = html.find("<polygon points=\"") + 17;
  std::istringstream points(html.substr(begin, html.find('"', begin) - begin));
  std::vector<std::pair<double, double>> path;
  for (std::string point; points >> point;)
    path.emplace_back(std::stod(point), std::stod(point.substr(point.find(',') + 1)));
  ASSERT_EQ(path.size(), 10U);
  for (std::size_t i = 1; i < path.size(); ++i) {
    EXPECT_TRUE(path[i].first == path[i - 1].first || path[i].second == path[i - 1].second) << i;
  }
}

TEST(Chart, EveryShapeIsAnother) {
  std::set<std::string> drawn;
  for (const page::Shape shape : {page::Shape::kDot, page::Shape::kRing, page::Shape::kCross, page::Shape::kSquare,
                                  page::Shape::kTriangle, page::Shape::kDiamond}) {
    Chart chart = three_dots();
    chart.marks.front().shape = shape;
    const std::string html = page::chart(chart);
    EXPECT_EQ(HtmlReader(html).fault(), "");
    drawn.insert(html);
  }
  EXPECT_EQ(drawn.size(), 6U);
}

TEST(Chart, LeavesOutCategoriesThatWouldMeet) {
  Chart chart = three_dots();
  chart.x = {.title = "x", .min = -0.5, .max = 29.5};
  for (int i = 0; i < 30; ++i) chart.categories.push_back("category " + std::to_string(i));
  const std::string html = page::chart(chart);
  EXPECT_NE(html.find(">category 0<"), std::string::npos);
  EXPECT_EQ(html.find(">category 1<"), std::string::npos);
}

TEST(Bars, EndWhereTheirPartsAddUpTo) {
  page::Bars bars;
  bars.title = "Bars";
  bars.axis = {.title = "GiB", .min = 0.0, .max = 100.0};
  bars.bars = {{"one <b>", {{"a", 20.0}, {"b", 30.0}}, 50.0}, {"two", {{"a", 40.0}, {"b", 60.0}}}};
  bars.limit = 80.0;
  bars.limit_name = "limit";
  bars.mark_name = "measured";
  const std::string html = page::bars(bars);
  const HtmlReader read(html);
  ASSERT_EQ(read.fault(), "");
  const std::vector<double> widths = numbers_after(html, "width=\"");
  ASSERT_GE(widths.size(), 4U);
  EXPECT_NEAR(widths[1] / widths[0], 1.5, 0.01);
  EXPECT_NEAR((widths[2] + widths[3]) / (widths[0] + widths[1]), 2.0, 0.01);
}

TEST(Parallel, BreaksALineWhereATrialHasNoValue) {
  page::Parallel parallel;
  parallel.title = "All";
  parallel.axes = {{"a", {"1", "2"}, {0.25, 0.75}}, {"b", {"x"}, {0.5}}, {"c", {"y"}, {0.5}}};
  parallel.lines = {{3, "trial 3", "best", {0.25, 0.5, 0.5}}, {4, "trial 4", "failed", {0.75, -1.0, 0.5}}};
  const std::string html = page::parallel(parallel);
  EXPECT_EQ(HtmlReader(html).fault(), "");
  EXPECT_NE(html.find("data-trial=\"4\" data-places=\"0.750 -1.000 0.500\""), std::string::npos);
  const std::size_t failed = html.find("class=\"trial failed\"");
  const std::string path = html.substr(html.rfind("d=\"", failed), failed - html.rfind("d=\"", failed));
  EXPECT_EQ(std::count(path.begin(), path.end(), 'M'), 2) << path;
}

TEST(AxisAround, HoldsItsValues) {
  const report::PlotAxis one = page::axis_around("x", {5.0});
  EXPECT_LT(one.min, 5.0);
  EXPECT_GT(one.max, 5.0);
  EXPECT_FALSE(page::axis_around("x", {0.0, 5.0}, true).logarithmic) << "zero has no logarithm";
  const report::PlotAxis decades = page::axis_around("x", {1.0, 1000.0}, true);
  EXPECT_TRUE(decades.logarithmic);
  EXPECT_GT(decades.min, 0.0);
  EXPECT_EQ(page::axis_around("x", {}).max, 1.0);
}

}  // namespace krigtune::chart_test
