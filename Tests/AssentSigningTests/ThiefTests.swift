import AssentCore
import AssentJOSE
import AssentSigning
import AssentSigningProtocol
import TestSupport
import Testing

@Suite("Signing device: what a thief learns from its files")
struct ThiefTests {
    private let scene: Scene
    private let space = (0..<24).map { String(7380 + $0) }

    init() throws { scene = try Scene(isExpensive: true) }

    /// Every PIN of the space that something in the files or on the wire tells from the others, and what told it.
    private func search(
        _ files: StoredFiles, before: StoredFiles? = nil, _ transcripts: [JSONValue], k: String = ""
    ) throws -> String {
        let job: JSONValue = [
            "state": files.state, "transcripts": .array(files.records + (before?.records ?? []) + transcripts),
            "before": before?.state ?? ["slots": [:], "keys": [:]],
            "space": .array(space.map { .string($0) }), "k": .string(k),
        ]
        return try PythonPeer.run(
            """
            import json, sys
            job = json.loads(sys.stdin.read())
            k = int(job["k"], 16) if job["k"] else None
            before = job["before"]
            old = [(before["slots"][key["slot"]], key["kid"], key["blob"]) for key in before["keys"].values()]
            print(json.dumps(thief.Thief(job["state"], job["transcripts"], old, k).search(job["space"])))
            """, input: job.serializedBytes())
    }

    /// Everything that went over the wire, as far as the server could read it.
    private func transcripts() async -> [JSONValue] {
        var all: [JSONValue] = []
        for (_, texts) in await scene.server.sent { all += texts.map { .string($0) } }
        for plaintext in await scene.server.plaintexts {
            if let value = try? JSONValue.parse(plaintext) { all.append(value) }
        }
        return all
    }

    @Test(
        "Nothing in the files and on the wire of an assisted PIN verifies a guess; with the server's key it is found",
        .enabled(if: PythonPeer.mustRun))
    func assisted() async throws {
        let device = scene.device()
        let container = try await scene.enrolled(
            device, [.signing: "7391"], by: ScriptedServer.PasswordOffer(.assisted) { $0.rules["history"] = 3 })
        let before = try await StoredFiles(scene)
        #expect(try search(before, await transcripts()) == "{}")
        try await scene.fetched(container, on: device).setStatus("accept", password: Secret("7391"), number: "42")
        // A wrong try, a changed PIN, and an approval that waits for its answer.
        let password = try #require(container.password(.signing))
        await #expect(throws: SigningError(.wrongPassword)) { try await password.verify(Secret("7385")) }
        try await password.change(from: Secret("7391"), to: Secret("7396"))
        await scene.server.refuse("/device/transactions/decide", .init(status: 503, code: "unavailable"))
        await #expect(throws: SigningError(.unavailable)) {
            try await scene.fetched(container, on: device).setStatus(
                "accept", password: Secret("7396"), number: "42")
        }
        let files = try await StoredFiles(scene)
        #expect(files.records.count == 2)
        #expect(try search(files, before: before, await transcripts()) == "{}")
        // The same program finds the PIN once the server's key is stolen, too.
        let key = try #require(await scene.server.signingSlot?.key)
        let found = try search(files, await transcripts(), k: Hex.encode(key.secret.revealBytes()))
        #expect(found == #"{"7396": ["the server's k"]}"#)
    }

    @Test("The same program finds a local PIN in the files", .enabled(if: PythonPeer.mustRun))
    func local() async throws {
        _ = try await scene.enrolled(
            scene.device(), [.signing: "7391"], by: ScriptedServer.PasswordOffer(.local))
        let files = try await StoredFiles(scene)
        let found = try search(files, [])
        #expect(found == #"{"7391": ["the local KEK opens the blob"]}"#)
    }

    @Test("Each stored value of a device with an assisted PIN is one of this list, and none is made from the PIN alone")
    func structure() async throws {
        let device = scene.device()
        let container = try await scene.enrolled(
            device, [.signing: "7391"], by: ScriptedServer.PasswordOffer(.assisted) { $0.rules["history"] = 3 })
        let password = try #require(container.password(.signing))
        // A change that has begun, so that everything is there that can be.
        await scene.server.refuse("/device/slots/change-commit", .init(status: 503, code: "unavailable"))
        await #expect(throws: SigningError(.unavailable)) {
            try await password.change(from: Secret("7391"), to: Secret("7396"))
        }
        let files = try await StoredFiles(scene)
        let slot = try #require(files.records.first?["slots"]?.array?.first?.object)
        // r is random; last and commit are signed by keys that no PIN makes; state, tries and spare are the server's.
        #expect(
            Set(slot.members.map(\.name)) == [
                "slot", "mode", "current", "pending", "commit", "failures", "r", "last", "state", "tries", "spare",
            ])
        for name in ["current", "pending"] {
            let generation = try #require(slot[name]?.object)
            #expect(Set(generation.members.map(\.name)) == ["gen", "salt", "kdf", "pk", "keys"])
            for key in generation["keys"]?.array ?? [] {
                let members = key.object?.members ?? []
                #expect(Set(members.map(\.name)) == ["label", "jwk", "blob"])
            }
        }
        #expect(slot["failures"]?.integer == 0)
        let known: Set = [
            "format", "id", "issuer", "issuerName", "identity", "minimum", "certificates", "created", "code", "pid",
            "name", "offer", "did", "nonceD", "nonceS", "sub", "user", "enrol", "serial", "expires", "renewable",
            "echo",
            "handle", "confirmed", "state", "approvals", "serverTime", "properties", "slots",
        ]
        let names = Set((files.records.first?.object?.members ?? []).map(\.name))
        #expect(names.isSubset(of: known))
        // What scrypt makes of the PIN, or a hash of that, is nowhere.
        let current = try #require(slot["current"])
        let salt = try #require(current["salt"]?.string.flatMap { Base64URL.decode($0) })
        let cost = try #require(PasswordCost(logN: 14, r: 8, p: 1))
        let pending = try #require(slot["pending"]?["salt"]?.string.flatMap { Base64URL.decode($0) })
        for (text, salt) in [("7391", salt), ("7396", pending)] {
            let s = try #require(NormalizedPassword(Secret(text))).stretched(salt: salt, cost: cost).revealBytes()
            for record in files.records {
                let bytes = record.serializedBytes()
                for needle in [s, SHA2.sha256(s)] {
                    #expect(!bytes.contains(Array(Base64URL.encode(needle).utf8)))
                }
            }
        }
        // Blobs open under nothing that the PIN alone makes.
        #expect(await scene.keys.keyNames().count == 3)
    }
}
