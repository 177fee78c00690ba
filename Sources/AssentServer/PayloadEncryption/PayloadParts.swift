import AssentEngine

/// What both listeners share of payload encryption: there is one of each in a process.
struct PayloadParts: Sendable {
    let keys: PayloadKeys
    let sessions: PayloadSessions
    let handshakes: PayloadHandshakes

    init(
        _ context: EngineContext, proofs: SenderProofs, versions: SealedVersions = SealedVersions([:])
    ) {
        keys = PayloadKeys(context)
        sessions = PayloadSessions(context, keys: keys, versions: versions)
        handshakes = PayloadHandshakes(context, keys: keys, sessions: sessions, proofs: proofs, versions: versions)
    }
}

extension ServerConfiguration {
    /// Which versions of the apps seal their calls.
    var sealedVersions: SealedVersions {
        SealedVersions(
            Dictionary(realms.map { ($0.name, $0.apps) }, uniquingKeysWith: { $1 }),
            routes: (gateway?.routes ?? []).filter(\.requiresSealing).map(\.name))
    }
}
