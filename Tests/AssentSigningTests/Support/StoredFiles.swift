import AssentCore
import AssentJOSE
import AssentSigningProtocol
import AssentVault
import Testing

/// What somebody has who has copied a device: its store, and its provider's keys, which are software's and have no
/// passphrase. In the form that the thief of the second implementation reads.
struct StoredFiles {
    let records: [JSONValue]
    /// The state of the only container, with the inner blobs.
    let state: JSONValue

    init(_ scene: Scene) async throws {
        var records: [JSONValue] = []
        for name in await scene.store.names() {
            guard let stored = try await scene.store.value(name) else { continue }
            records.append(try JSONValue.parse(stored.value.revealBytes()))
        }
        self.records = records
        let record = try #require(records.first { $0["slots"] != nil })
        let id = try #require(record["id"]?.string)
        let outer = await scene.keys.agreementKey(named: "tsp.\(id):seal")
        let provider = try #require(outer)
        var slots = JSONObject()
        var keys = JSONObject()
        for slot in record["slots"]?.array ?? [] {
            let current = try #require(slot["current"])
            let name = try #require(slot["slot"]?.string)
            slots[name] = [
                "slot": .string(name), "mode": try #require(slot["mode"]), "gen": try #require(current["gen"]),
                "salt": try #require(current["salt"]), "kdf": try #require(current["kdf"]),
            ]
            for key in current["keys"]?.array ?? [] {
                let blob = try #require(key["blob"]?.string.flatMap { Base64URL.decode($0) })
                let inner = try await ECIES.cofactorVariableIVX963SHA256AESGCM.open(blob, with: provider)
                let jwk = try #require(key["jwk"])
                keys[try #require(key["label"]?.string)] = [
                    "slot": .string(name), "jwk": jwk, "kid": .string(try ProtocolKey(jwk).thumbprint.text),
                    "blob": .string(Base64URL.encode(inner.revealBytes())),
                ]
            }
        }
        state = [
            "iss": try #require(record["issuer"]), "did": try #require(record["did"]), "slots": .object(slots),
            "keys": .object(keys),
        ]
    }
}
