#include "workload/workload.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/json.h"

namespace krigtune::workload_test {

workload::Workload read(const std::string& json) {
  return workload::read_workload(parse_json(json, "s.json"), "s.json", "/workload");
}

TEST(Workload, ReadsItsBlock) {
  const workload::Workload workload =
      read(R"({"model": {"preset": "gpt2"}, "precision": "bf16", "optimizer": "sgd", "train_batch_size": 512})");
  EXPECT_EQ(workload.model, workload::model_preset("gpt2-124m"));
  EXPECT_EQ(workload.precision, workload::Precision::kBf16);
  EXPECT_EQ(workload.optimizer, workload::OptimizerKind::kSgd);
  EXPECT_EQ(workload.train_batch_size, 512);
}

TEST(Workload, LeavesTheBatchFreeUnlessStated) {
  EXPECT_EQ(read(R"({"model": {"preset": "gpt2"}})").train_batch_size, std::nullopt);
}

TEST(Workload, SurvivesWritingAndReading) {
  for (const char* precision : {"fp32", "fp16", "bf16"}) {
    for (const char* optimizer : {"adamw", "sgd"}) {
      const Json json = {{"model", workload::to_json(workload::model_preset("llama-7b"))},
                         {"precision", precision},
                         {"optimizer", optimizer},
                         {"framework", "megatron"},
                         {"dialect", "deepspeed"},
                         {"gradient_clipping", 1.0},
                         {"train_batch_size", 64}};
      EXPECT_EQ(workload::to_json(read(json.dump())), json);
    }
  }
  const workload::Workload free = read(R"({"model": {"preset": "gpt2"}})");
  EXPECT_EQ(workload::to_json(read(workload::to_json(free).dump())), workload::to_json(free));
}

TEST(Workload, RefusesWhatMakesNoSense) {
  EXPECT_THROW(read("{}"), UserError);
  EXPECT_THROW(read(R"({"model": {"preset": "gpt2"}, "framework": "horovod"})"), UserError);
  EXPECT_THROW(read(R"({"model": {"preset": "gpt2"}, "train_batch_size": 0})"), UserError);
  EXPECT_THROW(read(R"({"model": {"preset": "gpt2"}, "precision": "fp8"})"), UserError);
  EXPECT_THROW(read(R"({"model": {"preset": "gpt2"}, "batch": 8})"), UserError);
}

}  // namespace krigtune::workload_test
