import Assent
import AssentPeers
import AssentServer
import Foundation
import HTTPTypes
import TestSupport
import Testing

@testable import AssentCLI
@testable import AssentDemo

@Suite("assent device scan, rename and renew")
struct DeviceChangeTests {
    private static let secret = SystemRandom().token()

    static let shop = """
              shop:
                name: Example Shop
                secretHash: \(Base64URL.encode(SHA2.sha256(secret.utf8)))
                grantTypes: [client_credentials]
                scopes: [signing]
                defaultScopes: [signing]

        """

    /// A page of the shop: the text of its QR code, and the number beside it.
    static func page(_ world: DemoWorld) async throws -> (code: String, number: String) {
        let transport = try NIOTransport(
            configuration: NIOTransportConfiguration(
                trustRoots: world.endpoints.authorityFile.map { .pemFile($0) } ?? .system,
                pins: ["localhost": .unpinned]
            ).withLeastLimit(.seconds(Patience.seconds)))
        let client = try PeerClient(transport)
        let (server, realm) = (world.endpoints.server, "realms/root/realms/alpha")
        let basic = Data("shop:\(secret)".utf8).base64EncodedString()
        let answer = try await client.post(
            "\(server)/oauth2/\(realm)/access_token",
            form: FormItems(["grant_type": "client_credentials", "scope": "signing"]),
            fields: [.authorization: "Basic \(basic)"])
        let token = try #require(answer.json["access_token"]?.string, "\(answer.text)")
        var fields: HTTPFields = [.authorization: "Bearer \(token)", .contentType: "application/json"]
        let key = try #require(HTTPField.Name("Idempotency-Key"))
        fields[key] = SystemRandom().uuid()
        let wish: JSONValue = [
            "claim": true, "template": "transfer", "authorization_details": "[]",
            "origin": ["place": "Vienna", "address": "192.0.2.7"],
        ]
        let made = try await client.send(
            .post, "\(server)/signing/\(realm)/transactions", fields, body: wish.serializedBytes())
        await transport.shutdown()
        try #require(made.status == 201, "\(made.text)")
        return (try #require(made.json["tds"]?.string), try #require(made.json["number"]?.string))
    }

    @Test("What a page shows as a QR code is claimed, shown with where it began, and signed with the page's number")
    func scan() async throws {
        let clients = "    clients:\n"
        try await DeviceTests.run(editing: { $0.replacing(clients, with: clients + Self.shop) }) {
            world, user, device in
            let desk = DeviceDesk(world: world, user: user, device: device)
            try await desk.enrol()
            let page = try await Self.page(world)
            let file = device.home + "/qr.txt"
            try Data((page.code + "\n").utf8).write(to: URL(fileURLWithPath: file))
            let signed = try await desk.onDevice("device", "scan", "--file", file, typing: ["Approve", page.number])
            #expect(signed.status == 0 && signed.output.contains("Approved: accept"), "\(signed.errors)")
            for text in ["Example Shop asks: Confirm transfer", "Asked from Vienna", "Asked from 192.0.2.7"] {
                #expect(signed.output.contains(text), "\(signed.output)")
            }
            let again = try await desk.onDevice("device", "scan", page.code, typing: ["Approve", page.number])
            #expect(again.status == 2 && !again.output.contains("Approved"), "\(again)")

            let next = try await Self.page(world)
            let wrong = try await desk.onDevice(
                "device", "scan", next.code, typing: ["Approve", next.number == "10" ? "11" : "10"])
            #expect(wrong.status == 2 && wrong.errors.contains("[match_wrong]"), "\(wrong.errors)")
            for (words, status, text) in [
                (["nothing"], 1, "[invalidArgument]"), (["--file", file + ".txt"], 1, "there is no such file"),
                ([], 64, "Give the text or --file."), ([next.code, "--file", file], 64, "Give the text or --file."),
            ] as [([String], Int32, String)] {
                let refused = try await desk.onDevice(["device", "scan"] + words)
                #expect(refused.status == status && refused.errors.contains(text), "\(words): \(refused.errors)")
            }
        }
    }

    @Test("A container has its new name here and at the server; one that cannot be shown is refused")
    func rename() async throws {
        try await DeviceTests.run { world, user, device in
            let desk = DeviceDesk(world: world, user: user, device: device)
            try await desk.enrol(["--name", "A laptop"])
            func names() async throws -> [String?] {
                let here = try await desk.onDevice("device", "list").output
                let there = try await user.run("admin", "devices", "list", world.account.username).output
                return [try JSONValue.parse(here)["name"]?.string, try JSONValue.parse(there)["name"]?.string]
            }
            #expect(try await names() == ["A laptop", "A laptop"])
            let done = try await desk.onDevice("device", "rename", "At home ✓")
            #expect(done.status == 0, "\(done.errors)")
            #expect(try await names() == ["At home ✓", "At home ✓"])
            for (words, code) in [
                ([""], "invalidArgument"), (["a\u{1B}[2Jb"], "invalidArgument"),
                ([String(repeating: "x", count: 129)], "invalidArgument"),
                (["Another", "--container", "nothing"], "invalidContainer"),
            ] as [([String], String)] {
                let refused = try await desk.onDevice(["device", "rename"] + words)
                #expect(refused.status == 1 && refused.errors.contains("[\(code)]"), "\(words): \(refused.errors)")
            }
            #expect(try await names() == ["At home ✓", "At home ✓"])
        }
    }

    @Test("With the code of a reset a container has new keys once the digits were typed; too early there are none")
    func renew() async throws {
        try await DeviceTests.run(with: "      freshSeconds: 3600\n") { world, user, device in
            let desk = DeviceDesk(world: world, user: user, device: device)
            try await desk.enrol()
            let container = try await DevicePINCommandTests.container(desk)
            // Those that count.
            func keys() async throws -> Set<String> {
                let listed = try await user.run("admin", "devices", "list", world.account.username)
                let all = try #require(try JSONValue.parse(listed.output)["keys"]?.array, "\(listed.errors)")
                return Set(all.filter { $0["state"] == "ACTIVE" }.compactMap { $0["kid"]?.string })
            }
            let before = try await keys()
            #expect(!before.isEmpty)
            let early = try await desk.onDevice("device", "renew")
            #expect(early.status == 1, "\(early.output)")
            #expect(early.errors.contains("[fresh_authentication_required]"), "\(early.errors)")
            let mistyped = try await desk.onDevice("device", "renew", "ABCDE")
            #expect(mistyped.status == 1 && mistyped.errors.contains("[invalidArgument]"), "\(mistyped.errors)")
            #expect(try await keys() == before)

            let inviting = try user.start(["device", "invite", "--container", container], typing: true)
            let line = try await inviting.line(with: "assent device renew")
            let code = try #require(line.split(separator: " ").last.map(String.init))
            let shown = try await desk.onDevice("device", "renew", code)
            #expect(shown.status == 0 && shown.output.contains("Type these digits"), "\(shown.errors)")
            #expect(try await keys() == before)
            let invited = try await desk.confirm(inviting, shown: shown.output)
            #expect(invited.output.contains("The digits are right"), "\(invited.output)")
            let renewed = try await desk.onDevice("device", "renew", code)
            #expect(renewed.status == 0 && renewed.output.contains("has new keys"), "\(renewed.errors)")
            let after = try await keys()
            #expect(after.count == before.count && after.isDisjoint(with: before))
            #expect(try await DevicePINCommandTests.container(desk) == container)
            _ = try await desk.payAndSign()
        }
    }
}
