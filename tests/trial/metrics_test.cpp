#include <gtest/gtest.h>

#include <set>
#include <string_view>

#include "trial/outcome.h"

namespace krigtune::metrics_test {
namespace {

TEST(Metrics, EachIsFoundByItsNameAndHasAFieldOfItsOwn) {
  std::set<std::string_view> names;
  std::set<std::string_view> fields;
  for (const trial::Metric& metric : trial::known_metrics()) {
    EXPECT_EQ(trial::find_metric(metric.name), &metric);
    EXPECT_TRUE(names.insert(metric.name).second) << metric.name;
    EXPECT_TRUE(fields.insert(metric.field).second) << metric.field;
    EXPECT_GT(metric.units_a_value, 0.0);
  }
  EXPECT_EQ(trial::find_metric("samples_per_s"), nullptr);  // a field, and not a name
  EXPECT_EQ(trial::find_metric(""), nullptr);
}

TEST(Metrics, LessIsBetterOfSecondsOnly) {
  for (const trial::Metric& metric : trial::known_metrics())
    EXPECT_EQ(metric.maximize, !metric.unit.empty()) << metric.name;
}

TEST(Metrics, SpeedIsToldByNameOrByField) {
  for (const char* of_speed : {"throughput", "tokens_per_s", "step_time_s", "latency", "flops_per_s", "goodput"}) {
    EXPECT_TRUE(trial::tells_speed(of_speed)) << of_speed;
  }
  EXPECT_FALSE(trial::tells_speed("accuracy"));
  EXPECT_FALSE(trial::find_metric("goodput")->is_speed);
}

}  // namespace
}  // namespace krigtune::metrics_test
