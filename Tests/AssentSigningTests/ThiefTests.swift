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
        let uri = "otpauth://hotp/Bank:ana?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=Bank&digits=6&counter=0"
        await scene.server.edit("offer") { offer in
            let code: JSONValue = ["usage": "otp", "label": "bank", "policy": "device"]
            offer["keys"] = .array((offer["keys"]?.array ?? []) + [code])
        }
        await scene.server.edit("enrolled") {
            $0["otp"] = [["label": "bank", "policy": "device", "uri": .string(uri)]]
        }
        let device = scene.device()
        let container = try await scene.enrolled(
            device, [.signing: "7391"], by: ScriptedServer.PasswordOffer(.assisted) { $0.rules["history"] = 3 })
        // A second container, with another PIN.
        var other = try Scene(isExpensive: true, issuer: "https://am.example/other")
        (other.store, other.keys) = (scene.store, scene.keys)
        _ = try await other.enrolled(
            other.device(), [.signing: "7394"], by: ScriptedServer.PasswordOffer(.assisted))
        // A decision that waits for its answer, a renewal and a change that have begun: everything that there can be.
        await scene.server.refuse("/device/transactions/decide", .init(status: 503, code: "unavailable"))
        await #expect(throws: SigningError(.unavailable)) {
            try await scene.fetched(container, on: device).setStatus("accept", password: Secret("7391"), number: "42")
        }
        await scene.server.refuse("/device/renew/commit", .init(status: 400, code: "invalid_request"))
        await #expect(throws: SigningError(.invalidRequest)) { try await container.renew { _ in Secret("7391") } }
        await scene.server.refuse("/device/slots/change-commit", .init(status: 503, code: "unavailable"))
        let password = try #require(container.password(.signing))
        await #expect(throws: SigningError(.unavailable)) {
            try await password.change(from: Secret("7391"), to: Secret("7396"))
        }

        let values = try await scene.storedValues()
        for (name, value) in values {
            let kind = String(try #require(name.split(separator: ".").dropFirst().first))
            let members = names(value)
            switch kind {
            case "container": try checkContainer(value)
            case "renewal":
                #expect(members == ["format", "next", "oldKeys", "oldOffer", "endorsements"])
                try checkContainer(#require(value["next"]))
            case "decision":
                #expect(members == ["format", "did", "txn", "exp", "status", "effect", "decision", "possession"])
            case "otp": #expect(members == ["format", "did", "label", "uri", "counter"])
            default: Issue.record("\(name) is none of the kinds that are known")
            }
        }
        let kinds = values.keys.map { $0.split(separator: ".").dropFirst().first ?? "" }
        #expect(kinds.sorted() == ["container", "container", "decision", "otp", "renewal"])

        let pins = ["7391", "7396", "7394"]
        let sealed = try await scene.storedKeys()
        // Two keys each: of both containers, of the change and of the renewal.
        #expect(sealed.count == 8 && sealed.allSatisfy { $0.context.mode == .assisted })
        for key in sealed { #expect(try !key.opens(by: pins)) }
        // What scrypt makes of a PIN, or a hash of that, is nowhere.
        for salt in Set(sealed.map(\.context.salt)) {
            for pin in pins {
                let cost = try #require(sealed.first).context.cost
                let s = try #require(NormalizedPassword(Secret(pin))).stretched(salt: salt, cost: cost).revealBytes()
                for (name, value) in values {
                    let text = value.serialized()
                    for needle in [s, SHA2.sha256(s)] { #expect(!text.contains(Base64URL.encode(needle)), "\(name)") }
                }
            }
        }
    }

    @Test("The same check finds that a local PIN opens the keys that it seals")
    func localKeys() async throws {
        _ = try await scene.enrolled(scene.device(), [.signing: "7391"], by: ScriptedServer.PasswordOffer(.local))
        let sealed = try await scene.storedKeys()
        #expect(sealed.count == 2)
        for key in sealed {
            #expect(try key.opens(by: ["7396", "7391"]))
            #expect(try !key.opens(by: ["7396"]))
        }
    }

    private func names(_ value: JSONValue?) -> Set<String> { Set((value?.object?.members ?? []).map(\.name)) }

    /// The members of a container, and of what it keeps of its passwords.
    private func checkContainer(_ value: JSONValue) throws {
        let known: Set = [
            "format", "id", "issuer", "issuerName", "identity", "minimum", "certificates", "created", "code", "pid",
            "name", "offer", "did", "nonceD", "nonceS", "sub", "user", "enrol", "serial", "expires", "renewable",
            "echo", "handle", "confirmed", "state", "approvals", "serverTime", "statusAt", "properties", "slots",
            "keyID", "statuses",
        ]
        #expect(names(value).subtracting(known) == [])
        // r and r' are random; last, confirmation, confirmed and commit are signed by keys that no PIN makes; state,
        // tries and spare are the server's.
        let ofSlot: Set = [
            "slot", "mode", "current", "pending", "commit", "failures", "r", "rNext", "last", "confirmation",
            "confirmed", "state", "tries", "spare",
        ]
        for slot in try #require(value["slots"]?.array) {
            #expect(names(slot).subtracting(ofSlot) == [] && slot["failures"]?.integer == 0)
            for generation in [slot["current"], slot["pending"]].compactMap(\.self) {
                #expect(names(generation) == ["gen", "salt", "kdf", "pk", "keys"])
                for key in try #require(generation["keys"]?.array) { #expect(names(key) == ["label", "jwk", "blob"]) }
            }
        }
    }
}
