import AssentCore
import AssentJOSE
import AssentPeers
import Foundation
import HTTPTypes
import Testing

@testable import AssentCLI
@testable import AssentDemo

@Suite("The demo's pieces")
struct DemoTests {
    @Test("Who has signed in at a server elsewhere hears how to keep that, and nobody else does")
    func warning() throws {
        let directory = try TemporaryDirectory()
        let places = Places(environment: ["XDG_CONFIG_HOME": directory.url.path(percentEncoded: false)])
        #expect(DemoCommand.warning(places) == nil)
        try FileManager.default.createDirectory(atPath: places.configuration, withIntermediateDirectories: true)
        for (server, isWarned) in [("https://localhost:8443/am", false), ("https://am.bank.example/am", true)] {
            let text = """
                server: \(server)
                client: {id: bank-app, redirectURI: "http://127.0.0.1/callback", scopes: [openid]}

                """
            try Data(text.utf8).write(to: URL(fileURLWithPath: places.configurationFile(profile: "default")))
            let warning = DemoCommand.warning(places)
            #expect((warning != nil) == isWarned)
            #expect(warning?.contains("\(server) already") != false && warning?.contains("--profile demo") != false)
        }
    }

    @Test("Text cannot break out of the page, and no script or foreign resource is in it")
    func escaping() {
        let evil = #"</text><script>alert("1")</script>&'"# + "\u{1B}[2J\u{202E}"
        let page = SequencePage(
            title: evil, subtitle: evil,
            events: [
                .step(number: 1, title: evil), .message(from: .app, to: .bank, text: evil, refused: true),
                .note(.user, evil), .clock(evil), .check(evil, passed: false),
            ]
        ).html
        #expect(!page.contains("<script"))
        #expect(!page.contains("\u{1B}") && !page.contains("\u{202E}"))
        #expect(!page.contains("http://") && !page.contains("src="))
    }

    @Test("The diagram of the payment ends with the refusal of the same request, and has neither clock nor other steps")
    func payment() {
        let narration = Narration(to: Console(silent: true))
        let told: [Narration.Event] = [
            .step(number: 3, title: "asked"), .check("before", passed: true), .step(number: 4, title: "pays"),
            .clock("moved"), .check("paid", passed: true), .step(number: 5, title: "spent"),
            .message(from: .gateway, to: .app, text: "409", refused: true), .check("again", passed: true),
            .check("another amount", passed: true), .step(number: 6, title: "refreshed"),
        ]
        for event in told { narration.tell(event) }
        #expect(
            narration.payment == [
                .step(number: 1, title: "pays"), .check("paid", passed: true), .step(number: 2, title: "spent"),
                .message(from: .gateway, to: .app, text: "409", refused: true), .check("again", passed: true),
            ])
        let file = SequenceDrawing(events: [.note(.user, "<script>&")]).svg(label: "\"<", isFile: true)
        #expect(file.hasPrefix("<svg xmlns=") && !file.contains("<script") && !file.contains("\"<\""))
    }

    @Test("In another directory than the repository's it says where to run it")
    func elsewhere() throws {
        let home = try VaultCommandTests.Home()
        let ended = try home.run(URL(fileURLWithPath: "/bin/sh"), ["-c", "cd / && '\(home.program.path)' demo"])
        #expect(ended.status == 78 && ended.err.contains("Run it in the directory of Assent's"), "\(ended.err)")
    }

    @Test("The narration shows what the bank is asked without the query, and refusals as refusals")
    func bankLines() {
        let narration = Narration(to: Console(silent: true))
        narration.tellBank("POST /transfers?to=Bob HTTP/1.1", isReply: false)
        narration.tellBank("HTTP/1.1 201 Created", isReply: true)
        narration.tellBank("HTTP/1.1 409 Conflict", isReply: true)
        narration.tellBank("nonsense", isReply: true)
        #expect(
            narration.events == [
                .message(from: .gateway, to: .bank, text: "POST /transfers", refused: false),
                .message(from: .bank, to: .gateway, text: "201", refused: false),
                .message(from: .bank, to: .gateway, text: "409", refused: true),
            ])
    }

    @Test("A failed check makes the story fail")
    func failures() {
        let narration = Narration(to: Console(silent: true))
        narration.tell(.check("good", passed: true))
        narration.tell(.check("bad", passed: false))
        #expect(narration.failures == ["bad"])
        #expect(narration.checkCount == 2)
    }

    /// A door that refuses each proof: without a nonce it asks for one, with one it says that the token is not valid.
    private struct Door: HTTPTransport {
        let proofs = Locked<[String]>([])

        @concurrent func send(_ call: HTTPCall) async throws -> HTTPReply {
            let proof = call.request.headerFields[.dpop] ?? ""
            let count = proofs.withLock { proofs in
                proofs.append(proof)
                return proofs.count
            }
            let error = count == 1 ? "use_dpop_nonce" : "invalid_token"
            let fields: HTTPFields = [
                .wwwAuthenticate: "SSOADVICE realm=\"/\",DPoP error=\"\(error)\",algs=\"ES256\"",
                .dpopNonce: "N\(count)",
            ]
            return HTTPReply(HTTPResponse(status: .unauthorized, headerFields: fields))
        }
    }

    @Test("A thief proves a key of their own, takes the nonce that everybody gets, and is told of as somebody else")
    func thief() async throws {
        let (door, clock) = (Door(), DemoClock())
        let narration = Narration(to: Console(silent: true))
        let thief = try Thief(
            transport: NarratingTransport(
                transport: door, narration: narration, parties: [443: .gateway], sender: .thief),
            clock: clock)
        let url = "https://gateway.example/accounts"
        let fields: HTTPFields = [.authorization: "DPoP a-token"]
        let answer = try await thief.prove(
            HTTPRequest(.get, url: url, headerFields: fields), token: Secret("a-token"))
        #expect(answer.description == "401 invalid_token")
        let proofs = try door.proofs.withLock { $0 }.map {
            try DPoPProof.verify($0, method: "GET", uri: url, accessToken: Secret("a-token"), clock: clock)
        }
        #expect(proofs.map(\.nonce) == [nil, "N1"])
        #expect(Set(proofs.map(\.thumbprint)).count == 1 && Set(proofs.map(\.jti)).count == 2)
        let sent = Narration.Event.message(
            from: .thief, to: .gateway, text: "GET /accounts (with access token, proof)", refused: false)
        #expect(narration.events.filter { $0 == sent }.count == 2)
        #expect(
            narration.events.count {
                if case .message(from: .gateway, to: .thief, _, true) = $0 { true } else { false }
            } == 2)
    }

    @Test("What a thief is answered is the challenge's error, else the body's, and nothing that a terminal obeys")
    func answers() async throws {
        func answer(_ status: Int, _ fields: HTTPFields, _ body: String) async throws -> String {
            let response = HTTPResponse(status: .init(code: status), headerFields: fields)
            return try await Thief.Answer(HTTPReply(response, body: HTTPBody(body))).description
        }
        let challenge: HTTPFields = [.wwwAuthenticate: "DPoP error=\"invalid_dpop_proof\""]
        #expect(try await answer(401, challenge, #"{"error":"other"}"#) == "401 invalid_dpop_proof")
        #expect(try await answer(400, [:], #"{"error":"invalid_grant"}"#) == "400 invalid_grant")
        #expect(try await answer(200, [:], #"{"balance":"1.00"}"#) == "200")
        #expect(try await answer(302, [:], "") == "302")
        #expect(try await !answer(400, [:], #"{"error":"a\u001b[2J"}"#).contains("\u{1B}"))
    }

    @Test("A secret is found in every form, and in a piece of twelve bytes")
    func search() {
        let secret = Secret("correct horse battery staple")
        let search = SecretSearch([("password", secret)])
        let bytes = secret.revealBytes()
        for haystack in [
            Array("xx correct horse b yy".utf8), Array(Base64URL.encode(bytes).utf8), Array(Hex.encode(bytes).utf8),
            Array(Data(bytes).base64EncodedString().utf8), Array("%63%6F%72%72%65%63%74".utf8),
        ] { #expect(search.found(in: haystack) == ["password"]) }
        #expect(search.found(in: Array("correct horse".utf8.dropLast(2))) == [])
        #expect(search.found(in: []) == [])
    }
}
