#include "report/memory_advice.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/json.h"

namespace krigtune::memory_advice_test {

session::Session session_of(const std::string& cluster, const std::string& space, const std::string& memory = "{}",
                            const std::string& runner = "simulate") {
  const std::string text =
      R"({"workload": {"model": {"layers": 24, "hidden": 2048, "heads": 16, "vocab": 50257, "seq_len": 1024}, "train_batch_size": 64}, "cluster": )" +
      cluster + R"(, "space": )" + space + R"(, "memory": )" + memory + R"(, "baseline": null, "runner": {"kind": ")" +
      runner + R"("}})";
  return session::read_session(parse_json(text, "test"), "test", ".");
}

constexpr const char* kGpus = R"({"gpus_per_node": 8, "gpu": "a100-80gb"})";

TEST(MemoryAdvice, NamesWhatTheSpaceCouldHoldAndNoLimitThatAGpuDoesNotHave) {
  EXPECT_EQ(
      report::memory_advice(session_of(kGpus, R"({"zero_stage": [0, 1], "micro_batch": [4, 8]})")),
      "let the space contain a lower micro_batch, a higher zero_stage, tensor_parallel, activation_checkpointing or "
      "offload_optimizer, or use more GPUs");
}

TEST(MemoryAdvice, LeavesOutWhatIsThereAlready) {
  const std::string all = R"({"zero_stage": [0, 3], "micro_batch": [1, 2], "tensor_parallel": [1, 2],
                              "activation_checkpointing": ["none", "full"], "offload_optimizer": ["none", "cpu"]})";
  EXPECT_EQ(report::memory_advice(session_of(kGpus, all)),
            "let the space contain configurations that need less memory, or use more GPUs");
}

TEST(MemoryAdvice, RaisesALimitThatIsTheUsersOwn) {
  const session::Session local = session_of(R"({"gpus_per_node": 2, "gpu": "local"})", R"({"micro_batch": [1, 2]})",
                                            R"({"limit_gib": 100})", "bench");
  EXPECT_EQ(report::memory_advice(local),
            "let the space contain tensor_parallel, activation_checkpointing or offload_optimizer, or raise the memory "
            "limit (/memory/limit_gib)");
}

// The drivers' numbers differ by about a per cent: many people write 80 for an A100 that reports 79.2.
TEST(MemoryLimit, IsNoMoreThanTheNamedGpuHas) {
  const std::string space = R"({"micro_batch": [1, 2]})";
  EXPECT_NO_THROW(session_of(kGpus, space, R"({"limit_gib": 80})"));
  try {
    session_of(kGpus, space, R"({"limit_gib": 96})");
    FAIL() << "96 GiB were accepted";
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(),
                 "test: /memory/limit_gib: 96 GiB is more than the a100-80gb has, 79.2 GiB; leave it out, or name the "
                 "GPU that has them (\"hardware\" in the cluster for one of your own)");
  }
  const std::string own = R"({"gpus_per_node": 8, "gpu": "a100-80gb",
                              "hardware": {"gpus": {"a100-80gb": {"memory_gib": 96}}}})";
  EXPECT_NO_THROW(session_of(own, space, R"({"limit_gib": 96})"));
}

}  // namespace krigtune::memory_advice_test
