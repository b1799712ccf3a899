#include "page/fleet/fleet_page.h"

#include <gtest/gtest.h>

#include "core/json.h"
#include "html_reader.h"

namespace krigtune::fleet_page_test {

fleet::Fleet fleet_of(const std::string& price) {
  const Json session = parse_json(
      R"({"workload": {"model": {"preset": "llama-3-8b"}, "precision": "bf16", "train_batch_size": 128,
          "framework": "fsdp"}, "space": {"zero_stage": [3], "micro_batch": [1, 2], "activation_checkpointing": ["full"]}})",
      "s");
  const std::string clusters = R"({"clusters": [
    {"name": "<b>", "gpu": "h100-80gb", "gpus_per_node": [4, 8])" +
                               price + R"(},
    {"gpu": "rtx4090-24gb", "gpus_per_node": 1)" +
                               price + R"(}], "currency": "EUR", "tokens": 1e9})";
  return fleet::study_fleet({session, "s", "."}, session::read_clusters(parse_json(clusters, "c"), "c", "."), {});
}

std::string page_of(const fleet::Fleet& fleet) {
  const fleet::Choice choice = fleet::choose(fleet, 30.0);
  return page::fleet_page({fleet, choice, 30.0, "<job>", "today"});
}

TEST(FleetPage, HasAMarkAndARowForEachClusterAndTheAnswers) {
  const fleet::Fleet fleet = fleet_of(R"(, "price_per_gpu_hour": 2)");
  const std::string html = page_of(fleet);
  const HtmlReader read(html);
  ASSERT_EQ(read.fault(), "");
  ASSERT_TRUE(fleet.plans[0].best && fleet.plans[1].best);
  EXPECT_FALSE(fleet.plans[2].best) << "one card is too small";
  EXPECT_NE(html.find("krigtune plan: &lt;job&gt; on 3 clusters"), std::string::npos);
  EXPECT_NE(read.text().find("Cheapest: row "), std::string::npos) << read.text();
  EXPECT_NE(read.text().find("Time against price"), std::string::npos);
  EXPECT_NE(read.text().find("price (EUR)"), std::string::npos);
  EXPECT_NE(read.text().find("Efficiency against size"), std::string::npos);
  EXPECT_NE(read.text().find("What these numbers assume"), std::string::npos);
  EXPECT_NE(read.text().find("row 3 (rtx4090-24gb, 1): no configuration fits"), std::string::npos) << read.text();
  EXPECT_EQ(html.find("<b>"), std::string::npos) << "a name is text";
  for (const std::string& link : read.links()) {
    if (link.rfind("#row-", 0) != 0) continue;
    EXPECT_TRUE(read.ids().contains(link.substr(1))) << link;
  }
  EXPECT_TRUE(read.ids().contains("row-2"));
  EXPECT_FALSE(read.ids().contains("row-3"));
}

TEST(FleetPage, WithoutPricesShowsTimeAgainstSize) {
  const std::string html = page_of(fleet_of(""));
  const HtmlReader read(html);
  ASSERT_EQ(read.fault(), "");
  EXPECT_NE(read.text().find("Time against GPUs"), std::string::npos);
  EXPECT_EQ(read.text().find("Cheapest: "), std::string::npos);
  EXPECT_NE(read.text().find("no price, because the file has no"), std::string::npos);
}

}  // namespace krigtune::fleet_page_test
