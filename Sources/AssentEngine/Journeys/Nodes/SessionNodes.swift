import AssentCore

/// Raises or lowers the level that the session will have.
struct ModifyAuthLevelNode: RunnableNode {
    static let name = "ModifyAuthLevelNode"
    let outcomes = ["outcome"]
    private let increment: Int

    init(_ settings: NodeSettings) {
        increment = settings.integer("authLevelIncrement", default: 1, in: -1_000...1_000)
    }

    func process(_ context: inout NodeContext) async throws -> NodeResult {
        context.progress.authLevel = min(max(context.progress.authLevel + increment, 0), 1_000)
        return .outcome("outcome")
    }
}

/// Notes properties in the session and, if it says so, for how many minutes the session may live.
struct SetSessionPropertiesNode: RunnableNode {
    static let name = "SetSessionPropertiesNode"
    let outcomes = ["outcome"]
    private let properties: [String: String]
    private let maxSession: Int?
    private let maxIdle: Int?

    /// Set by the engine; a node that could change them could fake having passed a journey.
    private static let reserved: Set<String> = ["Service", "AMCtxId"]

    init(_ settings: NodeSettings) {
        properties = settings.stringsByName("properties")
        maxSession = settings.optionalInteger("maxSessionTime", in: 1...43_200)
        maxIdle = settings.optionalInteger("maxIdleTime", in: 1...43_200)
        for name in properties.keys.sorted() where Self.reserved.contains(name) {
            settings.refuse("properties.\(name)", "is set by the server")
        }
    }

    func process(_ context: inout NodeContext) async throws -> NodeResult {
        context.progress.sessionProperties.merge(properties) { $1 }
        if let maxSession { context.progress.sessionLimits.maxSession = Int64(maxSession) * 60 }
        if let maxIdle { context.progress.sessionLimits.maxIdle = Int64(maxIdle) * 60 }
        return .outcome("outcome")
    }
}
