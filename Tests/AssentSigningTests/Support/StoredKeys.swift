import AssentCore
import AssentSigningProtocol
import AssentVault
import Testing

/// A sealed key of a store without what the key provider has put around it, and where it belongs.
struct StoredKey {
    let inner: [UInt8]
    let context: SealedKeyContext

    /// Whether a key that one of these passwords makes alone opens it: as a `local` one would, or with nothing in the
    /// place of what the server adds.
    func opens(by passwords: [String]) throws -> Bool {
        for password in passwords {
            let normalized = try #require(NormalizedPassword(Secret(password)))
            let s = try normalized.stretched(salt: context.salt, cost: context.cost)
            let hash = Secret(bytes: SHA2.sha256(s.revealBytes()))
            let local = SealedKeyContext(
                mode: .local, issuer: context.issuer, did: context.did, slot: context.slot, kid: context.kid,
                generation: context.generation, cost: context.cost, salt: context.salt)
            var keys = [try local.key(s: s, output: nil), s, hash]
            if context.mode == .assisted {
                keys += [try context.key(s: s, output: Secret("")), try context.key(s: s, output: s)]
            }
            for key in keys where (try? SealedKey.open(inner, in: context, with: key)) != nil { return true }
        }
        return false
    }
}

extension Scene {
    /// Every value of the store, by its name.
    func storedValues() async throws -> [String: JSONValue] {
        var values: [String: JSONValue] = [:]
        for name in await store.names() {
            guard let stored = try await store.value(name) else { continue }
            values[name] = try JSONValue.parse(stored.value.revealBytes())
        }
        return values
    }

    /// Every sealed key of the store: of containers, of passwords that are being changed, and of renewals.
    func storedKeys() async throws -> [StoredKey] {
        var found: [StoredKey] = []
        for value in try await storedValues().values {
            let record = value["next"] ?? value
            for slot in record["slots"]?.array ?? [] {
                for generation in [slot["current"], slot["pending"]].compactMap(\.self) {
                    for key in generation["keys"]?.array ?? [] {
                        found.append(try await storedKey(key, generation, slot, record))
                    }
                }
            }
        }
        return found
    }

    private func storedKey(
        _ key: JSONValue, _ generation: JSONValue, _ slot: JSONValue, _ record: JSONValue
    ) async throws -> StoredKey {
        func text(_ value: JSONValue, _ name: String) throws -> String { try #require(value[name]?.string) }
        let (id, did) = (try text(record, "id"), try text(record, "did"))
        let (mode, name) = (try text(slot, "mode"), try text(slot, "slot"))
        let (salt, cost) = (try text(generation, "salt"), try text(generation, "kdf"))
        let jwk = try #require(key["jwk"])
        let number = try #require(generation["gen"]?.integer)
        let blob = try #require(key["blob"]?.string.flatMap { Base64URL.decode($0) })
        let sealing = await keys.agreementKey(named: "tsp.\(id):seal")
        let outer = try #require(sealing)
        let inner = try await ECIES.cofactorVariableIVX963SHA256AESGCM.open(blob, with: outer)
        let context = SealedKeyContext(
            mode: try #require(PasswordMode(rawValue: mode)), issuer: try text(record, "issuer"),
            did: try #require(SigningID(text: did)), slot: try #require(PasswordSlot(rawValue: name)),
            kid: try ProtocolKey(jwk).thumbprint, generation: Int(number), cost: try #require(PasswordCost(cost)),
            salt: try #require(Base64URL.decode(salt)))
        return StoredKey(inner: inner.revealBytes(), context: context)
    }
}
