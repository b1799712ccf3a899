// The session for a model of which only the size, or the size and its activations, are known.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "deepspeed/job/ds_config.h"
#include "deepspeed/session/deepspeed_session.h"
#include "session/session.h"

namespace krigtune::deepspeed_model_test {

// Inputs for four ranks.
deepspeed::DsSessionInputs inputs_of(const std::string& config, const std::vector<std::string>& flags = {}) {
  deepspeed::DsSessionInputs inputs;
  inputs.config = deepspeed::read_ds_config(config, "ds.json");
  inputs.ds_config = "ds.json";
  inputs.directory = "/";
  inputs.machine.cluster.gpus_per_node = 4;
  std::vector<std::string> words = {"deepspeed", "train.py", "--deepspeed_config", "ds.json"};
  words.insert(words.end(), flags.begin(), flags.end());
  inputs.command = deepspeed::read_ds_command(words);
  return inputs;
}

bool says(const deepspeed::DsSession& session, const std::string& text) {
  return std::any_of(session.remarks.begin(), session.remarks.end(),
                     [&](const std::string& remark) { return remark.find(text) != std::string::npos; });
}

Json list(const char* text) { return parse_json(text, "expected"); }

// Brown et al. 2020, table 2.1: a model with 350 million parameters has width 1024; one with 6.7 billion has 4096 and
// 32 layers.
TEST(DeepSpeedModel, TakesAModelOfAKnownSizeForAGptWhereASequenceIsKnown) {
  deepspeed::DsSessionInputs inputs = inputs_of(R"({"train_batch_size": 32})", {"--seq_length", "1024"});
  for (const auto& [params, layers, hidden] :
       std::vector<std::array<std::int64_t, 3>>{{354'000'000, 24, 1024}, {6'650'000'000, 32, 4096}}) {
    inputs.model.num_params = params;
    const deepspeed::DsSession session = deepspeed::deepspeed_session(inputs);
    const workload::ModelSpec model = session::read_session(session.json, "s.json", "/").workload.value().model;
    EXPECT_EQ(model.layers, layers);
    EXPECT_EQ(model.hidden, hidden);
    EXPECT_EQ(model.seq_len, 1024);
    EXPECT_EQ(session.num_params, params);
    const auto made = static_cast<double>(workload::parameter_count(model));
    EXPECT_LE(std::abs(made / static_cast<double>(params) - 1.0), 0.02);
    EXPECT_TRUE(says(session, "the usual shape of its"));
  }
  inputs.model.num_params = 1'000'000;  // less than GPT-2's embedding
  EXPECT_FALSE(deepspeed::deepspeed_session(inputs).json.contains("workload"));
  inputs = inputs_of(R"({"train_batch_size": 32})");
  inputs.model.num_params = 354'000'000;  // with an unknown sequence length
  EXPECT_FALSE(deepspeed::deepspeed_session(inputs).json.contains("workload"));
  EXPECT_TRUE(says(deepspeed::deepspeed_session(inputs), "of its 354000000 parameters only stages are judged"));
}

// 1e9 parameters of 16 bits with AdamW on 4 ranks take 16e9, 2e9 + 2e9 + 3e9, 2e9 + 3.5e9 and 4e9 bytes at stages 0 to
// 3.
TEST(DeepSpeedModel, LeavesRoomForTheBucketAndOneSequenceInEachStage) {
  const auto stages = [](const std::string& bucket, double limit_gb, std::optional<double> slope) {
    deepspeed::DsSessionInputs inputs = inputs_of(R"({"train_batch_size": 32, "bf16": {"enabled": true},
        "zero_optimization": {"stage": "auto", "overlap_comm": true, "reduce_bucket_size": )" +
                                                  bucket + "}}");
    inputs.model.num_params = 1'000'000'000;
    inputs.model.activation_slope_bytes = slope;
    inputs.machine.rank_memory = Bytes{static_cast<std::int64_t>(limit_gb * 1e9)};
    return deepspeed::deepspeed_session(inputs).json["space"]["zero_stage"];
  };
  EXPECT_EQ(stages("1000", 17.0, {}), list("[0, 1, 2, 3]"));
  EXPECT_EQ(stages("1000", 8.0, {}), list("[1, 2, 3]"));
  EXPECT_EQ(stages("500000000", 8.0, {}), list("[2, 3]"));  // two buckets of 1e9 bytes on top of 7e9
  EXPECT_EQ(stages("1000", 8.0, 2e9), list("[2, 3]"));
  EXPECT_EQ(stages("500000000", 8.0, 2e9), list("[3]"));
}

}  // namespace krigtune::deepspeed_model_test
