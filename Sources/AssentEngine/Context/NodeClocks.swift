/// How far clocks may be apart, in seconds (`docs/scaling.md`, "Clocks").
enum NodeClocks {
    /// A node's from the database server's: where they differ by this or more, the node is not ready. A configuration
    /// may allow more, and says what that costs.
    static let tolerance: Int64 = 30

    /// Two nodes' from each other: one may be ahead, and the other behind.
    static let difference = 2 * tolerance
}
