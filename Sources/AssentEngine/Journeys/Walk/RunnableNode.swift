import AssentCore

/// A node that can run. An implementation is a small value that is made from a node's settings once, when the server
/// starts; everything that changes while a journey runs is in the ``NodeContext``.
package protocol RunnableNode: Sendable {
    /// The name by which journeys call this type of node, for example `DataStoreDecisionNode`.
    static var name: String { get }

    /// A node from its settings. Mistakes in them are noted in `settings`; the node must still be made.
    init(_ settings: NodeSettings)

    /// Its possible outcomes, in the order in which an operator sees them.
    var outcomes: [String] { get }

    /// Asks, or decides.
    ///
    /// It is called without answers when the journey arrives at it, and again with answers each time that the user has
    /// answered what it asked.
    func process(_ context: inout NodeContext) async throws -> NodeResult
}

/// What a node wants next.
package enum NodeResult: Sendable, Hashable {
    /// The user is asked this, on a page that looks like this.
    case ask([CallbackPrompt], presentation: PagePresentation = .plain)
    /// The journey goes on by this outcome.
    case outcome(String)
}
