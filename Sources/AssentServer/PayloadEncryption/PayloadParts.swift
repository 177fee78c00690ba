import AssentEngine

/// What both listeners share of payload encryption: there is one of each in a process.
struct PayloadParts: Sendable {
    let keys: PayloadKeys
    let sessions: PayloadSessions
    let handshakes: PayloadHandshakes

    init(_ context: EngineContext, proofs: SenderProofs, isDatabaseTimed: Bool = false) {
        keys = PayloadKeys(context)
        sessions = PayloadSessions(context, keys: keys, isDatabaseTimed: isDatabaseTimed)
        handshakes = PayloadHandshakes(context, keys: keys, sessions: sessions, proofs: proofs)
    }
}
