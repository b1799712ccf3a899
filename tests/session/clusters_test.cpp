#include "session/clusters.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/json.h"
#include "user_error.h"

namespace krigtune::clusters_test {

session::ClustersFile read(const std::string& text) {
  return session::read_clusters(parse_json(text, "c.json"), "c.json", ".");
}

// Returns the error that a file with this entry causes.
std::string refusal(const std::string& entry) {
  try {
    read(R"({"clusters": [)" + entry + "]}");
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(ClustersFile, HasEverySizeOfEachEntryInAscendingOrder) {
  const session::ClustersFile file = read(R"({
    "clusters": [
      {"gpu": "H100-80GB", "gpus_per_node": 8, "network": "ib-ndr-400", "nodes": [4, 1, 2], "price_per_gpu_hour": 2.5},
      {"name": "cards", "gpu": "l40s-48gb", "gpus_per_node": [8, 4]},
    ],
    "currency": "EUR", "samples": 1000, "epochs": 3})");
  ASSERT_EQ(file.entries.size(), 2U);
  const session::ClusterEntry& first = file.entries[0];
  EXPECT_EQ(first.name, "h100-80gb");
  EXPECT_EQ(first.price_per_gpu_hour, 2.5);
  ASSERT_EQ(first.sizes.size(), 3U);
  EXPECT_EQ(first.sizes[0].ranks(), 8);
  EXPECT_EQ(first.sizes[1].ranks(), 16);
  EXPECT_EQ(first.sizes[2].ranks(), 32);
  EXPECT_EQ(first.sizes[2].network->inter.name, "ib-ndr-400");
  const session::ClusterEntry& second = file.entries[1];
  EXPECT_EQ(second.name, "cards");
  EXPECT_FALSE(second.price_per_gpu_hour);
  ASSERT_EQ(second.sizes.size(), 2U);
  EXPECT_EQ(second.sizes[0].ranks(), 4);
  EXPECT_EQ(file.currency, "EUR");
  EXPECT_EQ(file.amount.all_tokens(512), 1000.0 * 512.0 * 3.0);
}

TEST(ClustersFile, RefusesWhatIsWrongWithThePlaceAndTheFix) {
  EXPECT_EQ(refusal(R"({"gpu": "h100-80g", "gpus_per_node": 8})"),
            "c.json: /clusters/0/gpu: the GPU 'h100-80g' is not known; did you mean 'h100-80gb'?");
  EXPECT_EQ(refusal(R"({"gpus_per_node": 8})"),
            "c.json: /clusters/0/gpu: is missing; name the GPU, for example \"h100-80gb\"");
  EXPECT_EQ(refusal(R"({"gpu": "local", "gpus_per_node": 8})"),
            "c.json: /clusters/0/gpu: may not be this machine; name the GPU, for example \"h100-80gb\"");
  EXPECT_EQ(refusal(R"({"gpu": "h100-80gb", "gpus_per_node": 8, "nodes": [1, 2]})"),
            "c.json: /clusters/0/network: is missing, and there are 2 nodes; write for example \"ib-ndr-400\"");
  EXPECT_EQ(refusal(R"({"gpu": "h100-80gb", "gpus_per_node": 8, "price_per_gpu_hours": 2})"),
            "c.json: /clusters/0/price_per_gpu_hours: unknown key; did you mean 'price_per_gpu_hour'?");
  EXPECT_EQ(
      refusal(R"({"gpu": "h100-80gb", "gpus_per_node": 8, "nodes": [1, 1.5]})"),
      "c.json: /clusters/0/nodes: 1.5 is not a number of nodes; write a whole number from 1 on, or a list of them");
  EXPECT_EQ(refusal(R"({"gpu": "h100-80gb", "gpus_per_node": 8}, {"gpu": "h100-80gb", "gpus_per_node": 4})"),
            "c.json: /clusters/1/name: another cluster is called 'h100-80gb' too; give each a \"name\" of its own");
  const std::string price = refusal(R"({"gpu": "h100-80gb", "gpus_per_node": 8, "price_per_gpu_hour": -2})");
  EXPECT_EQ(price.rfind("c.json: /clusters/0/price_per_gpu_hour: ", 0), 0U) << price;
  EXPECT_NE(price.find("above 0"), std::string::npos) << price;
}

TEST(ClustersFile, MaySayTheAmountOfDataOnlyOnce) {
  const std::string clusters = R"("clusters": [{"gpu": "h100-80gb", "gpus_per_node": 8}])";
  EXPECT_EQ(read("{" + clusters + R"(, "tokens": 3e11})").amount.all_tokens(4096), 3e11);
  EXPECT_FALSE(read("{" + clusters + "}").amount.is_stated());
  EXPECT_THROW(read("{" + clusters + R"(, "tokens": 1e9, "samples": 10})"), UserError);
  EXPECT_THROW(read("{" + clusters + R"(, "tokens": 0})"), UserError);
  EXPECT_THROW(read(R"({"tokens": 1e9})"), UserError);
  EXPECT_THROW(read(R"({"clusters": [], "tokens": 1e9})"), UserError);
}

TEST(ClustersFile, WithAnyOtherValueIsReadOrRefusedInOneLine) {
  const Json good = parse_json(
      R"({"clusters": [{"name": "a", "gpu": "h100-80gb", "gpus_per_node": 8, "network": "eth-100", "nodes": [1, 2],
          "price_per_gpu_hour": 2.5}], "currency": "EUR", "tokens": 1e9, "samples": null, "epochs": 1})",
      "good");
  const Json values = parse_json(R"([null, true, -1, 0, 1e300, "", "x", [], [null], {}, {"a": 1}])", "values");
  int refused = 0;
  const Json flat = good.flatten();
  for (const auto& [pointer, old] : flat.items()) {
    for (const Json& value : values) {
      Json changed = good;
      changed[Json::json_pointer(pointer)] = value;
      try {
        session::read_clusters(changed, "c.json", ".");
      } catch (const UserError& error) {
        EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 50);
}

}  // namespace krigtune::clusters_test
