import AssentCore

@testable import AssentEngine

/// Waits for something elsewhere that never happens.
struct PatientNode: RunnableNode {
    static let name = "PatientNode"
    let outcomes = ["outcome"]

    init(_ settings: NodeSettings) {}

    func process(_ context: inout NodeContext) async throws -> NodeResult {
        let polling = CustomCallback("PollingWaitCallback", outputs: ["waitTime": "1000"])
        return .ask([.textOutput("Wait."), .custom(polling)])
    }

    /// An engine that knows it, with the journey `Patient`, which takes so many seconds at most.
    static func fixture(seconds: Int64, transactionalOnly: Bool = false) async throws -> JourneyFixture {
        let journey = JourneyDefinition(
            name: "Patient", entry: "wait",
            nodes: ["wait": NodeDefinition("PatientNode", outcomes: ["outcome": .success])],
            transactionalOnly: transactionalOnly, timeout: seconds)
        return try await JourneyFixture(
            more: [journey],
            catalog: NodeCatalog([
                UsernameCollectorNode.self, PasswordCollectorNode.self, PageNode.self, DataStoreDecisionNode.self,
                RetryLimitDecisionNode.self, MessageNode.self, OathTokenVerifierNode.self, ZeroPageLoginNode.self,
                TransactionApprovalNode.self, ModifyAuthLevelNode.self, PatientNode.self,
            ]))
    }
}
