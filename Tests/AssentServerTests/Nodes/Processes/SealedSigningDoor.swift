#if PostgreSQL && os(Linux)
import AssentCore
import AssentPayload
import AssentSigningProtocol
import HTTPTypes
import NIOHTTP1
import SigningTesting
import Testing

@testable import AssentEngine
@testable import AssentServer

/// The server of several processes behind HAProxy, for a user and a device that call it sealed, in one session. Each
/// message goes by a connection of its own, so that any process gets it.
final class SealedSigningDoor: TestIssuer {
    let name = "https://localhost:8443/am/signing/realms/root/realms/alpha"

    private static let origin = "https://localhost:8443"
    private static let json = [("Content-Type", "application/json")]

    private let session: SealedChannel
    private let server: String
    private let node: ServeProcess
    private let last = Locked<UInt64>(0)

    /// - Parameters:
    ///   - key: the nodes' static key.
    ///   - server: where handshake and messages go.
    ///   - node: whose client carries them.
    /// - Throws: what the handshake throws.
    init(_ key: PayloadKeys.Listed, at server: String, by node: ServeProcess) async throws {
        let origin = try Origin(Self.origin)
        let handshake = try SealedChannel.handshake(at: origin, key)
        session = try await SealedChannel(at: origin, handshake) { body in
            try await node.send(
                "POST", server + "/assent-pe/1/handshake", Self.json + [("Connection", "close")], body: body)
        }
        (self.server, self.node) = (server, node)
    }

    /// The file of the nodes, whose payments a user signs on a device.
    static func file(_ text: String) -> String {
        SealedCalls.file(text).replacing(
            "    defaultJourney: Quick\n",
            with: """
                    defaultJourney: Quick
                    signing:
                      name: Bank of Example
                      freshSeconds: 3600
                      keys:
                        - {usage: sign, label: payments}
                      templates:
                        confirm: {title: Confirm}

                """, maxReplacements: 1
        ).replacing(
            "      Nod:\n",
            with: """
                      Sign:
                        entry: sign
                        transactionalOnly: true
                        nodes:
                          sign:
                            type: SignTransactionNode
                            config: {template: confirm}
                            outcomes: {approve: success, decline: failure, expired: failure, noDevice: failure}
                      Nod:

                """, maxReplacements: 1
        ).replacing("strategySpecifier: Nod", with: "strategySpecifier: Sign")
    }

    // MARK: - Calls

    /// Makes a call, and gives what was sealed for it.
    private func call(
        _ method: HTTPRequest.Method, _ path: String, _ told: [(String, String)] = [], _ content: [UInt8] = []
    ) async throws -> Answer {
        var fields = HTTPFields()
        for (name, value) in told { fields.append(HTTPField(name: try #require(HTTPField.Name(name)), value: value)) }
        let number = last.withLock { last in
            last += 1
            return last
        }
        let message = try session.sealed(session.request(method, "/am/" + path, fields), content, number: number)
        let answer = try await node.send(
            "POST", server + "/assent-pe/1/message", SealedClient.field + [("Connection", "close")],
            body: message.bytes)
        let opened = try session.open(answer, to: message.head)
        return Answer(
            status: opened.status,
            fields: HTTPHeaders(opened.response.headerFields.map { ($0.name.rawName, $0.value) }),
            bytes: opened.content)
    }

    private func signing(_ path: String) -> String { "signing/realms/root/realms/alpha/" + path }

    func configuration() async throws -> (bytes: [UInt8], nonce: String) {
        let reply = try await call(.get, signing("configuration"))
        return (reply.bytes, try #require(reply["TSP-Nonce"]))
    }

    func send(_ path: String, proof: String?, body: String) async throws -> String {
        let fields = [("Content-Type", "application/jose")] + (proof.map { [("TSP-Proof", $0)] } ?? [])
        let reply = try await call(.post, signing("device/" + path), fields, Array(body.utf8))
        guard reply.status == 200 else { throw TestRefusal(reply.json["code"]?.string ?? "status \(reply.status)") }
        return reply.text
    }

    // MARK: - What the user does

    /// Signs in with the password alone.
    func signIn(_ username: String, password: String) async throws -> String {
        let page = try await journey([("authIndexType", "service"), ("authIndexValue", "Quick")])
        let filled = ServerFixture.filled(page.json) { type in
            switch type {
            case "NameCallback": .string(username)
            case "PasswordCallback": .string(password)
            default: nil
            }
        }
        let answer = try await goOn(filled)
        return try #require(answer.json["tokenId"]?.string, "\(answer.text)")
    }

    /// A device of the user's that may sign.
    func enrolled(session: String) async throws -> (device: TestDevice, container: TestDevice.Enrolled) {
        let fields = ServerFixture.session(session) + Self.json
        let invite = try await call(.post, signing("invites"), fields, JSONValue.object([:]).serializedBytes())
        let pid = try #require(invite.json["pid"]?.string, "\(invite.text)")
        let code = try #require(invite.json["code"]?.string.flatMap { InviteCode(typed: $0) })
        let device = try TestDevice(self)
        let container = try await device.enrol(code)
        let digits: JSONValue = ["digits": .string(container.digits)]
        let typed = try await call(.post, signing("invites/\(pid)/digits"), fields, digits.serializedBytes())
        try #require(typed.json == ["state": "ACTIVE"], "\(typed.text)")
        return (device, container)
    }

    /// Begins the approval of a transaction: the page that waits for the device.
    func approval(of id: String, session: String) async throws -> JSONValue {
        let page = try await journey(
            [("authIndexType", "transaction"), ("authIndexValue", id)], ServerFixture.session(session))
        try #require(page.json["authId"] != nil, "\(page.text)")
        return page.json
    }

    /// Sends a page of a journey back, as the user has filled it.
    func goOn(_ page: JSONValue, session: String? = nil) async throws -> Answer {
        let fields = (session.map { ServerFixture.session($0) } ?? []) + Self.json
        return try await call(.post, Self.authenticate, fields, page.serializedBytes())
    }

    private static let authenticate = "json/realms/root/realms/alpha/authenticate"

    private func journey(_ query: [(String, String)], _ fields: [(String, String)] = []) async throws -> Answer {
        try await call(.post, Self.authenticate + "?" + ServerFixture.query(query), fields)
    }
}
#endif
