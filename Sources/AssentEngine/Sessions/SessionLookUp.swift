import AssentStore

/// How one session is found, by a text that is put together once.
struct SessionLookUp: ProofFinding {
    let reading: SQLStatement

    /// The same put together from its parts. It is made for those with a proof alone.
    let composed: @Sendable () -> ProofLookUp

    func spending(_ insertion: ProofInsertion) -> SQLStatement { composed().spending(insertion) }
}
