import AssentCore
import AssentJOSE
import AssentTesting
import AssentVault
import Testing

@testable import AssentSigning
@testable import AssentSigningProtocol

@Suite("Signing device: what it neither believes nor sends")
struct DeviceRefusalTests {
    let scene: Scene

    init() throws { scene = try Scene() }

    @Test("The same answer for another reason is another answer, and is not signed beside the first one")
    func otherReason() async throws {
        let device = scene.device()
        let transaction = try await scene.fetched(scene.enrolled(device), on: device)
        await scene.server.edit("receipt") { $0["dh"] = .string(SigningHash.decision("other").text) }
        await #expect(throws: SigningError(.serverAuthentication)) {
            try await transaction.setStatus("report", reason: "not me")
        }
        for reason in ["another one", nil] {
            await #expect(throws: SigningError(.decisionPending)) {
                try await transaction.setStatus("report", reason: reason)
            }
        }
        #expect(await scene.server.decisions.count == 1)
    }

    @Test("A key provider that has another key under the name signs nothing with it")
    func otherKey() async throws {
        let device = scene.device()
        let container = try await scene.enrolled(device)
        let transaction = try await scene.fetched(container, on: device)
        let name = try #require(await scene.keys.keyNames().first { $0.hasSuffix(".payments") })
        await scene.keys.removeKey(named: name)
        await #expect(throws: SigningError(.credentialsLost)) {
            try await transaction.setStatus("accept", number: "42")
        }
        _ = try await scene.keys.makeSigningKey(named: name, algorithm: .es256)
        await #expect(throws: SigningError(.credentialsLost)) {
            try await transaction.setStatus("accept", number: "42")
        }
        #expect(await scene.server.decisions.isEmpty)
        #expect(await !scene.store.names().contains { $0.hasPrefix("signing.decision.") })
        // The device key still refuses.
        #expect(try await transaction.setStatus("deny").effect == .deny)
    }

    @Test("A deletion is repeated until the server has signed that the container has ended")
    func deletion() async throws {
        let device = scene.device()
        let container = try await scene.enrolled(device)
        await scene.server.edit("status") { $0["state"] = "ACTIVE" }
        #expect(try await !container.delete())
        #expect(try await device.containers().isEmpty)
        await #expect(throws: SigningError(.serverAuthentication)) { try await scene.device().sendQueued() }
        #expect(await !scene.isEmpty)
        await scene.server.edit("status", nil)
        try await scene.device().sendQueued()
        #expect(await scene.isEmpty)
    }

    @Test("An answer that was not sent is not sent any more once its container is deleted")
    func deletedAnswer() async throws {
        let device = scene.device()
        let container = try await scene.enrolled(device)
        let transaction = try await scene.fetched(container, on: device)
        let refusal = ScriptedServer.Refusal(status: 503, code: "unavailable")
        await scene.server.refuse("/device/transactions/decide", refusal)
        await #expect(throws: SigningError(.unavailable)) { try await transaction.setStatus("accept", number: "42") }
        await scene.server.refuse("/device/delete", refusal, times: 2)
        #expect(try await !container.delete())
        // It gets no new keys, and makes no codes.
        await #expect(throws: SigningError(.invalidContainer)) { try await container.renew() }
        await #expect(throws: SigningError(.credentialsLost)) { try await container.oneTimeCode() }
        await #expect(throws: SigningError(.unavailable)) { try await scene.device().sendQueued() }
        try await scene.device().sendQueued()
        #expect(await scene.server.decisions.isEmpty)
        #expect(await scene.server.transactions.map(\.effect) == [nil])
        #expect(await scene.isEmpty)
    }

    @Test("An enrolment that was finished is not given up as one that was interrupted")
    func abandoned() async throws {
        let device = scene.device()
        let invite = try await scene.invite()
        await scene.server.refuse("/device/provision/confirm", .init(status: 503, code: "unavailable"))
        await #expect(throws: SigningError(.unavailable)) { try await device.enrol(invite) }
        let unfinished = try #require(await device.unfinishedEnrolments().first)
        let enrolment = try await device.enrol(invite)
        await #expect(throws: SigningError(.invalidContainer)) { try await device.abandonEnrolment(unfinished.id) }
        #expect(try await scene.server.type(enrolment.digits))
        #expect(try await device.container(enrolment.containerID).status().state == .active)
    }

    @Test("That a transaction has expired is believed behind its last second, by the server's clock")
    func lastSecond() async throws {
        for (time, isBelieved) in [(1400, false), (1401, true)] {
            let scene = try Scene()
            let device = scene.device()
            let container = try await scene.enrolled(device)
            let transaction = try await scene.fetched(container, on: device)
            await scene.server.refuse("/device/transactions/decide", .init(status: 503, code: "unavailable"))
            await #expect(throws: SigningError(.unavailable)) {
                try await transaction.setStatus("accept", number: "42")
            }
            await scene.server.set(time: time)
            try await container.status()
            await scene.server.refuse("/device/transactions/decide", .init(status: 410, code: "tx_expired"))
            await #expect(throws: SigningError(.transactionExpired)) { try await device.sendQueued() }
            #expect(try await device.unreceiptedTransactions() == (isBelieved ? [] : [transaction.id]))
            try await device.sendQueued()
            #expect(await scene.server.transactions.map(\.effect) == [isBelieved ? nil : "approve"])
        }
    }

    @Test("A decision of a container that the server does not know is told and dropped a day after its transaction")
    func unknownContainer() async throws {
        scene.clock.advance(by: 1000 - Double(scene.clock.epochSeconds))
        let device = scene.device()
        let transaction = try await scene.fetched(scene.enrolled(device), on: device)
        let path = "/device/transactions/decide"
        await scene.server.refuse(path, .init(status: 404, code: "unknown_container"), times: 3)
        await #expect(throws: SigningError(.unknownContainer)) {
            try await transaction.setStatus("accept", number: "42")
        }
        var refusals: [SigningError] = []
        func send() async throws { try await device.sendQueued(onRefusal: { refusals.append($0) }) }
        scene.clock.advance(by: 400 + 86_400)
        await #expect(throws: SigningError(.unknownContainer)) { try await send() }
        #expect(try await device.unreceiptedTransactions() == [transaction.id])
        #expect(refusals.isEmpty)
        scene.clock.advance(by: 1)
        await #expect(throws: SigningError(.unknownContainer)) { try await send() }
        #expect(refusals == [SigningError(.unknownContainer)] && refusals.first?.transactionID == transaction.id)
        #expect(try await device.unreceiptedTransactions().isEmpty)
        // Nothing is left to send.
        let asked = await scene.server.asked.count
        try await send()
        #expect(await scene.server.asked.count == asked)
    }

    @Test("A record of a form that is not known is not read as one that is", arguments: ["format", "did", "nonceS"])
    func forms(name: String) async throws {
        _ = try await scene.enrolled(scene.device())
        let key = try #require(await scene.store.names().first)
        let stored = try #require(try await scene.store.value(key))
        var record = try #require(JSONValue.parse(stored.value.revealBytes()).object)
        switch name {
        case "format": record["format"] = 2
        case "did": record["did"] = "x"
        // A later step without an earlier one.
        default: record["nonceS"] = nil
        }
        try await scene.store.update(key, to: Secret(bytes: JSONValue.object(record).serializedBytes()), expected: .any)
        await #expect(throws: SigningError(.secureData)) { try await scene.device().containers() }
    }

    @Test("A refusal is not believed while the signed list may be longer than what it shows")
    func longerList() async throws {
        let device = scene.device()
        let transaction = try await scene.fetched(scene.enrolled(device), on: device)
        await #expect(throws: SigningError(.matchWrong)) { try await transaction.setStatus("accept", number: "43") }
        await scene.server.edit("list") { $0["more"] = true }
        await #expect(throws: SigningError(.transactionFailed)) { try await device.sendQueued() }
        #expect(try await device.unreceiptedTransactions() == [transaction.id])
        await scene.server.edit("list", nil)
        await #expect(throws: SigningError(.transactionFailed)) { try await device.sendQueued() }
        #expect(try await device.unreceiptedTransactions().isEmpty)
    }

    @Test("Arguments out of their bounds are refused without a call")
    func arguments() async throws {
        let device = scene.device()
        for address in ["é", String(repeating: "a", count: 1025)] {
            await #expect(throws: SigningError(.invalidArgument)) {
                try await device.enrol(scene.invite(), pushID: address)
            }
        }
        let container = try await scene.enrolled(device)
        let info = try await device.retrieveTransactionInfo(scene.server.ticket(scene.server.ask()))
        let calls = await scene.server.asked.count
        func refused(_ body: () async throws -> Void) async {
            await #expect(throws: SigningError(.invalidArgument)) { try await body() }
        }
        for wait in [-1, 26] { await refused { _ = try await container.transactionIDs(wait: wait) } }
        for address in ["é", String(repeating: "a", count: 1025)] {
            await refused { try await container.setPushID(address) }
        }
        func properties(_ count: Int) -> [String: String] {
            Dictionary(uniqueKeysWithValues: (0..<count).map { ("p\($0)", "x") })
        }
        await refused { try await container.setProperties(properties(17)) }
        for reason in ["", "a\u{202E}b", String(repeating: "a", count: 201)] {
            await refused { _ = try await info.deny(reason: reason) }
            await refused { _ = try await info.report(reason: reason) }
        }
        await refused { _ = try await container.delete(reason: "a\u{202E}b") }
        await refused { _ = try await container.record("a\u{202E}b") }
        #expect(await scene.server.asked.count == calls)
        try await container.setProperties(properties(16))
        try await container.setPushID(String(repeating: "a", count: 1024))
        #expect(try await info.deny(reason: String(repeating: "a", count: 200)).effect == .deny)
    }

    @Test("What one container has heard of withdrawn keys holds for the next enrolment, too")
    func withdrawnKeys() async throws {
        let device = scene.device()
        let container = try await scene.enrolled(device)
        // Somebody has stolen the online keys, before they are withdrawn.
        func thief(_ base: Scene) async throws -> Scene {
            var thief = try Scene()
            await thief.server.share(keysOf: scene.server)
            (thief.store, thief.keys) = (base.store, base.keys)
            return thief
        }
        let (here, elsewhere) = (try await thief(scene), try await thief(Scene()))
        try await scene.server.rotateOnlineKey(withdrawing: true)
        #expect(try await container.status().state == .active)
        await #expect(throws: SigningError(.serverAuthentication)) { try await here.device().enrol(here.invite()) }
        #expect(await here.server.asked == ["/configuration"])
        #expect(try await device.containers().count == 1)
        // Who has not heard of it takes them.
        #expect(try await elsewhere.device().enrol(elsewhere.invite()).digits != nil)
    }

    // MARK: One-time codes

    private let uri = "otpauth://hotp/Bank:ana?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=Bank&digits=6&counter=0"

    private func offerCodes(_ labels: [String] = ["bank"]) async {
        let codes = labels.map { ["usage": "otp", "label": .string($0), "policy": "device"] as JSONValue }
        let keys: [JSONValue] = [
            ["usage": "device", "label": "device", "policy": "device"],
            ["usage": "transport", "label": "transport", "policy": "device"],
            ["usage": "sign", "label": "payments", "policy": "device"],
        ]
        await scene.server.offer(keys: .array(keys + codes))
    }

    private func code(_ label: String = "bank", uri: String? = nil, slot: JSONValue? = nil) -> JSONValue {
        var code: JSONObject = ["label": .string(label)]
        code["slot"] = slot
        code["policy"] = "device"
        code["uri"] = .string(uri ?? self.uri)
        return .object(code)
    }

    @Test("The keys for one-time codes are exactly those of the offer, without a password, and such as make codes")
    func otherCodes() async throws {
        await offerCodes()
        let invite = try await scene.invite()
        let device = scene.device()
        let lies: [JSONValue] = [
            [], [code("other")], [code(), code("other")], [code(slot: "otp")], [code(uri: "otpauth://hotp/x")],
            [code(uri: "https://am.example/")],
            // What such a counter is stored in could not be read again, see `OneTimeKeyRecord`.
            [code(uri: uri.replacing("counter=0", with: "counter=9007199254740992"))],
            [code(uri: uri.replacing("counter=0", with: "counter=9223372036854775807"))],
        ]
        for lie in lies {
            await scene.server.edit("enrolled") { $0["otp"] = lie }
            await #expect(throws: SigningError(.offerRefused), "\(lie.serialized())") {
                try await device.enrol(invite)
            }
            #expect(await !scene.store.names().contains { $0.hasPrefix("signing.otp.") })
        }
        let right = code()
        await scene.server.edit("enrolled") { $0["otp"] = [right] }
        let enrolment = try await device.enrol(invite)
        #expect(try await scene.server.type(enrolment.digits))
        #expect(try await device.container(enrolment.containerID).oneTimeKeys().map(\.label) == ["bank"])
    }

    @Test("A counter does not begin again because the key comes once more with new keys")
    func counter() async throws {
        await offerCodes()
        let right = code()
        await scene.server.edit("enrolled") { $0["otp"] = [right] }
        await scene.server.edit("renewal.enrolled") { $0["otp"] = [right] }
        let container = try await scene.enrolled(scene.device())
        // RFC 4226, appendix D.
        #expect(try await container.oneTimeCode().code.reveal() == "755224")
        #expect(try await container.renew().isDone)
        #expect(try await container.oneTimeCode().code.reveal() == "287082")
    }

    @Test("A key that the server makes in the place of another one gives its own codes, from its own counter")
    func replacedCode() async throws {
        await offerCodes()
        let (old, new) = (code(), code(uri: uri.replacing("counter=0", with: "counter=5")))
        await scene.server.edit("enrolled") { $0["otp"] = [old] }
        await scene.server.edit("renewal.enrolled") { $0["otp"] = [new] }
        let container = try await scene.enrolled(scene.device())
        #expect(try await container.oneTimeCode().code.reveal() == "755224")
        #expect(try await container.renew().isDone)
        // RFC 4226, appendix D.
        #expect(try await container.oneTimeCode().code.reveal() == "254676")
        #expect(try await container.oneTimeCode().code.reveal() == "287922")
    }

    @Test("Of several keys for one-time codes none is kept when one of them cannot be used")
    func oneBadCode() async throws {
        await offerCodes(["bank", "other"])
        let codes: JSONValue = [code(), code("other", uri: "otpauth://hotp/x")]
        await scene.server.edit("enrolled") { $0["otp"] = codes }
        let (invite, device) = (try await scene.invite(), scene.device())
        await #expect(throws: SigningError(.offerRefused)) { try await device.enrol(invite) }
        #expect(await !scene.store.names().contains { $0.hasPrefix("signing.otp.") })
    }

    // MARK: Errors that nobody has signed

    @Test("Of an error that nobody has signed only a name and two numbers are taken, within bounds")
    func problems() {
        func problem(_ json: String, status: Int = 403) -> SigningError {
            SigningHTTP.problem(status: status, Array(json.utf8))
        }
        let good = problem(#"{"code":"wait","remaining":0,"retryAfter":86400,"title":"Call 0900 1234"}"#)
        #expect(good.code == .passwordWait && good.remaining == 0 && good.retryAfter == 86400)
        #expect(!good.detail.contains("0900"))
        for number in ["-1", "86401", "1e9", "\"5\"", "1.5"] {
            let error = problem(#"{"code":"wait","remaining":\#(number),"retryAfter":\#(number)}"#)
            #expect(error.code == .passwordWait && error.remaining == nil && error.retryAfter == nil, "\(number)")
        }
        let long = String(repeating: "a", count: 65)
        let nameless = [
            #"{"code":"wait now"}"#, #"{"code":""}"#, #"{"code":7}"#, #"{"code":"w\u00e4it"}"#, #"{"code":"\#(long)"}"#,
            "{}", "[]", "", "wait", #"{"code":"wait","code":"busy"}"#,
            #"{"code":"wait","title":"\#(String(repeating: "a", count: 16 << 10))"}"#,
        ]
        for json in nameless {
            #expect(problem(json).code == .remote, "\(json.prefix(40))")
            #expect(problem(json, status: 499).code == .remote)
            #expect(problem(json, status: 500).code == .unavailable)
        }
        #expect(problem(#"{"code":"\#(long.dropLast())"}"#).code.rawValue == long.dropLast())
    }
}
