import Assent
import AssentConfiguration
import AssentCore
import AssentServer
import Foundation
import Testing

@testable import AssentCLI

@Suite("The client's file")
struct ClientFileTests {
    private let file = ClientFile(
        server: "https://localhost:8443/am", realm: "/alpha", cookieName: "session", clientID: "bank-app",
        redirectURI: "http://127.0.0.1/callback", scopes: ["openid", "accounts"], journey: "Log \"in\": now",
        resources: [.init(origin: "https://localhost:8444", credential: "accessToken")], authority: "/tmp/a b/ca.pem",
        pins: [])

    /// Where the file of a test is. It goes with the test.
    private final class Place: Sendable {
        let path = NSTemporaryDirectory() + "/assent-client-" + SystemRandom().uuid() + ".yaml"

        deinit {
            for file in [path, path + ".old"] { try? FileManager.default.removeItem(atPath: file) }
        }
    }

    private let place = Place()
    private var path: String { place.path }

    /// Writes the file as an operator does.
    private func put(_ text: String) throws { try Data(text.utf8).write(to: URL(fileURLWithPath: path)) }

    private static func pins(_ count: UInt8) throws -> [Pin] {
        try (1...count).map { try Pin(sha256: [UInt8](repeating: $0, count: 32)) }
    }

    private static let pin = "sha256/" + Data(repeating: 1, count: 32).base64EncodedString()
    private static let other = "sha256/" + Data(repeating: 2, count: 32).base64EncodedString()

    @Test("What is written is read as it was, whatever characters are in it")
    func roundTrip() throws {
        var file = file
        let pins = try Self.pins(2)
        file.pins = [.init(host: "localhost", pins: pins)]
        #expect(try ClientFile.parse(file.yaml, file: "client.yaml") == file)
        file.pins.append(.init(host: "10.0.0.1", pins: [pins[0]], isSingle: true))
        #expect(try ClientFile.parse(file.yaml, file: "client.yaml") == file)
    }

    @Test("What probes do is written as it was read, is report where nothing is said, and another word is refused")
    func integrity() throws {
        var file = file
        #expect(try ClientFile.parse(file.yaml, file: "client.yaml").integrity == IntegrityControls())
        file.integrity = IntegrityControls(debugger: .refuse, preload: .off, rooted: .report)
        #expect(try ClientFile.parse(file.yaml, file: "client.yaml") == file)
        let settings = file.configuration(vault: .memory).integrity.controls
        #expect(settings == file.integrity)
        #expect(file.configuration(vault: .memory).integrity.tellsServer)
        file.tellsServer = false
        #expect(try ClientFile.parse(file.yaml, file: "client.yaml") == file)
        #expect(!file.configuration(vault: .memory).integrity.tellsServer)
        for wrong in ["{debugger: stop}", "{debuger: refuse}"] {
            let text = self.file.yaml + "integrity: \(wrong)\n"
            #expect(throws: (any Error).self) { try ClientFile.parse(text, file: "client.yaml") }
        }
    }

    @Test(
        "A registration is written as it was read; its files are found from any directory; beside a key it is refused")
    func registration() throws {
        var file = file
        for registration in [
            ClientFile.Registration(), .init(clientName: "Ana's \"laptop\": 1"),
            .init(softwareVersion: "3.2.0", deviceName: "desk #1"),
            .init(remembersUsers: true), .init(remembersUsers: true, implicitScopes: ["greeting", "a \"b\""]),
            .init(initialAccessTokenFile: "/t/token", softwareStatementFile: "/t/a b.jwt"),
        ] {
            file.registration = registration
            #expect(try ClientFile.parse(file.yaml, file: "client.yaml") == file)
            // As the server says it where it writes the file.
            #expect(file.yaml.contains("Next: assent register --config"))
        }
        file.registration = .init(initialAccessTokenFile: "token.txt")
        try put(file.yaml)
        let read = try ClientFile.load(path)
        let beside = URL(fileURLWithPath: path).deletingLastPathComponent().appendingPathComponent("token.txt")
        #expect(read.registration?.initialAccessTokenFile == beside.standardizedFileURL.path)
        file.clientKey = "bank-app"
        let error = #expect(throws: ConfigurationError.self) { try ClientFile.parse(file.yaml, file: "client.yaml") }
        #expect(error?.message.contains("leave clientKey out") == true)
        file.clientKey = nil
        let unknown = file.yaml.replacing("registration: {", with: "registration: {secret: s, ")
        let other = #expect(throws: ConfigurationError.self) { try ClientFile.parse(unknown, file: "client.yaml") }
        #expect(other?.message.contains("secret") == true)
        file.registration = .init(implicitScopes: ["greeting"])
        let alone = #expect(throws: ConfigurationError.self) { try ClientFile.parse(file.yaml, file: "client.yaml") }
        #expect(alone?.message.contains("remembersUsers: true") == true)
    }

    @Test("Origins with their kinds, and the address of the resources, are read as they were written and reach the SDK")
    func resources() throws {
        var file = file
        file.resources = [
            .init(origin: "https://localhost:8444", credential: "accessToken", kinds: [.user, .device]),
            .init(origin: "https://greeting.example", credential: "accessToken", kinds: [.implicit, .user]),
            .init(origin: "https://app.example", credential: "accessToken", kinds: [.device]),
            .init(origin: "https://status.example", credential: "nothing"),
            .init(origin: "https://am.example", credential: "session"),
        ]
        file.resourceBase = "https://localhost:8444/v1"
        #expect(try ClientFile.parse(file.yaml, file: "client.yaml") == file)
        let configuration = file.configuration(vault: .memory)
        #expect(configuration.resourceBase == "https://localhost:8444/v1")
        #expect(configuration.resources["https://localhost:8444"] == .accessToken(of: [.user, .device]))
        #expect(configuration.resources["https://greeting.example"] == .accessToken(of: [.user, .implicit]))
        #expect(configuration.resources["https://app.example"] == .accessToken(of: [.device]))
        #expect(configuration.resources["https://status.example"] == .nothing)
        file.registration = .init(deviceScopes: ["app-data", "a \"b\""])
        #expect(try ClientFile.parse(file.yaml, file: "client.yaml") == file)
    }

    @Test(
        "An origin that gets what there is not, and an address that is no place of a named origin, are refused",
        arguments: [
            ("\"https://a.example\": cookies", "must be accessToken"),
            ("\"https://a.example\": {accessToken: [user, friend]}", "each once"),
            ("\"https://a.example\": {accessToken: [user, user]}", "each once"),
            ("\"https://a.example\": {accessToken: [nobody]}", "each once"),
            ("\"https://a.example\": {accessToken: []}", "each once"),
            ("\"https://a.example\": {session: [user]}", "session"),
            ("base: /v1", "is not a URL"), ("base: \"https://b.example/v1?a=1\"", "is not a URL"),
            ("base: \"https://b.example/v1\"", "is at an origin that is not named"),
            ("base: [a]", "must be a text"),
        ])
    func resourceFaults(line: String, words: String) throws {
        let text = file.yaml.replacing("resources:\n", with: "resources:\n  \(line)\n")
        let error = #expect(throws: ConfigurationError.self) { try ClientFile.parse(text, file: "client.yaml") }
        #expect(error?.message.contains(words) == true, "\(error as Any)")
    }

    @Test("A client's file in the place of a server's, and the other way round, is told with its line")
    func exchanged() throws {
        try put(file.yaml)
        let client = #expect(throws: ConfigurationError.self) { try ServerConfiguration.load(file: path) }
        #expect(
            client?.message.contains("belongs in a client's file") == true && client?.line != nil, "\(client as Any)")
        let text = "publicURL: https://localhost/am\nrealms:\n  alpha: {}\n"
        let server = #expect(throws: ConfigurationError.self) { try ClientFile.parse(text, file: "assent.yaml") }
        #expect(server?.message.contains("belongs in a server's file") == true && server?.line == 2, "\(server as Any)")
    }

    @Test("One pin is enough only where the file calls it the single one: the transport gets what the file says")
    func singlePin() throws {
        var file = file
        let pin = try Pin(sha256: [UInt8](repeating: 1, count: 32))
        for pins in [[pin], [pin, pin], []] {
            file.pins = [.init(host: "localhost", pins: pins)]
            let error = #expect(throws: ConfigurationError.self) {
                try ClientFile.parse(file.yaml, file: "client.yaml")
            }
            #expect(error?.message.contains("localhost") == true)
            #expect(file.configuration(vault: .memory).pins["localhost"] == .pins(pins))
        }
        file.pins = [.init(host: "localhost", pins: [pin], isSingle: true)]
        let read = try ClientFile.parse(file.yaml, file: "client.yaml")
        #expect(read.configuration(vault: .memory).pins["localhost"] == .singlePin(pin))
    }

    @Test("The server's file is written when it is missing or says something else, and an operator's single pin stays")
    func written() throws {
        func text() throws -> String { try String(contentsOfFile: path, encoding: .utf8) }
        var file = file
        let pins = try Self.pins(2)
        file.pins = [.init(host: "localhost", pins: pins)]
        #expect(try file.write(to: path))
        #expect(try !file.write(to: path))
        // What an operator wrote beside it stays, as long as it says the same.
        try put(file.yaml + "# ours\n")
        #expect(try !file.write(to: path))
        #expect(try text().hasSuffix("# ours\n"))
        file.server += "/other"
        #expect(try file.write(to: path))
        #expect(try text() == file.yaml)
        try put("broken: [")
        var warnings: [String] = []
        let isAnew = try file.write(to: path) { warnings.append($0) }
        #expect(isAnew)
        // It may have had what its operator wants.
        #expect(try String(contentsOfFile: path + ".old", encoding: .utf8) == "broken: [")
        #expect(warnings.count == 1 && warnings[0].contains(path + ".old"))
        #expect(try text() == file.yaml)
        file.pins = [.init(host: "localhost", pins: [pins[0]])]
        #expect(try file.write(to: path))
        #expect(try !file.write(to: path))
        var single = file
        single.pins = [.init(host: "localhost", pins: [pins[0]], isSingle: true)]
        try put(single.yaml)
        #expect(try !file.write(to: path))
        #expect(try text() == single.yaml)
        // So does the authority of a certificate of the operator's own, and both also when the rest changes.
        file.authority = nil
        single.authority = "/etc/ssl/bank.pem"
        try put(single.yaml)
        #expect(try !file.write(to: path))
        file.server += "/third"
        #expect(try file.write(to: path))
        #expect(try ClientFile.load(path).authority == "/etc/ssl/bank.pem")
        #expect(try ClientFile.load(path).server == file.server)
        #expect(try ClientFile.load(path).pins == single.pins)
        file.authority = "/another.pem"
        #expect(try file.write(to: path))
        #expect(try ClientFile.load(path).authority == "/another.pem")
        // Another key is another matter: the operator decides again.
        file.pins = [.init(host: "localhost", pins: [pins[1]])]
        #expect(try file.write(to: path))
        #expect(try text() == file.yaml)
    }

    @Test("What an operator wrote and the server does not know stays when the server writes its file anew")
    func keptBesideTheServer() throws {
        let pins = try Self.pins(2)
        var server = file
        server.pins = [.init(host: "localhost", pins: pins)]
        server.resourceBase = "https://localhost:8444"
        var edited = server
        // RFC 7748 §6.1: Alice's.
        edited.payloadEncryption = [
            .init(origin: "https://localhost:8444", keys: ["hSDwCYkwp1R0i33ctD73Wg2_Og0mOBr066SpjqqbTmo"])
        ]
        (edited.integrity, edited.tellsServer) = (IntegrityControls(debugger: .refuse), false)
        (edited.issuer, edited.clientKey) = ("https://localhost:8443/issuer", "bank-app")
        edited.resources.insert(.init(origin: "https://api.example", credential: "nothing"), at: 0)
        edited.resourceBase = "https://localhost:8444/v1"
        edited.pins.append(.init(host: "api.example", pins: [pins[0]], isSingle: true))
        try put(edited.yaml)
        #expect(try !server.write(to: path))
        server.server += "/other"
        server.pins = [.init(host: "localhost", pins: pins.reversed())]
        #expect(try server.write(to: path))
        (edited.server, edited.pins[0]) = (server.server, server.pins[0])
        #expect(try ClientFile.load(path) == edited)
        #expect(try !server.write(to: path))

        // Behind another gateway the old one is not among the origins, though what is sealed still is.
        server.resources = [.init(origin: "https://localhost:9444", credential: "accessToken")]
        server.resourceBase = "https://localhost:9444"
        #expect(try server.write(to: path))
        (edited.resources, edited.resourceBase, edited.pins) = (server.resources, server.resourceBase, server.pins)
        #expect(try ClientFile.load(path) == edited)

        // A trust file says hosts and pins in the server's place.
        (edited.trust, edited.resources, edited.pins) = ("/etc/bank.jws", [], [])
        try put(edited.yaml)
        #expect(try !server.write(to: path))
        server.journey = "Other"
        #expect(try server.write(to: path))
        edited.journey = "Other"
        #expect(try ClientFile.load(path) == edited)
    }

    @Test("A client with a key stays with its key: the server names only a public one, which has none")
    func keptClientWithKey() throws {
        var server = file
        var edited = server
        (edited.clientID, edited.clientKey, edited.scopes) = ("bank-batch", "bank-batch", ["openid"])
        (edited.realm, edited.journey) = ("/beta", "Batch")
        edited.redirectURI = "http://127.0.0.1/batch"
        try put(edited.yaml)
        #expect(try !server.write(to: path))
        server.cookieName = "other"
        #expect(try server.write(to: path))
        edited.cookieName = "other"
        #expect(try ClientFile.load(path) == edited)
        // What an app's installations are belongs to a key that each makes itself.
        server.registration = ClientFile.Registration()
        #expect(try server.write(to: path))
        #expect(try ClientFile.load(path) == server)
    }

    @Test("An app that an operator has put in the public client's place stays, with what its installations may call")
    func keptApp() throws {
        var server = file
        server.resourceBase = "https://localhost:8444"
        var edited = server
        (edited.clientID, edited.scopes) = ("bank-pay", ["openid"])
        edited.registration = .init(initialAccessTokenFile: "/t/token", deviceScopes: ["app-data"])
        edited.resources = [
            .init(origin: "https://localhost:8444", credential: "accessToken", kinds: [.user, .device])
        ]
        try put(edited.yaml)
        #expect(try !server.write(to: path))
        server.cookieName = "other"
        #expect(try server.write(to: path))
        edited.cookieName = "other"
        #expect(try ClientFile.load(path) == edited)
    }

    @Test("The CA that a server has made for itself goes from its file when the server has another certificate")
    func generatedAuthority() throws {
        var server = file
        server.authority = ClientFile.generatedAuthority(beside: path)
        #expect(try server.write(to: path))
        #expect(try !server.write(to: path))
        #expect(try ClientFile.load(path).authority == server.authority)
        server.authority = nil
        #expect(try server.write(to: path))
        #expect(try ClientFile.load(path).authority == nil)
    }

    @Test("A server that cannot write the file says so, and goes on")
    func unwritable() throws {
        let missing = path + "-missing/client.yaml"
        var warnings: [String] = []
        let isWritten = file.offer(at: missing) { warnings.append($0) }
        #expect(!isWritten)
        #expect(warnings.count == 1 && warnings.first?.hasPrefix("\(missing) cannot be written: ") == true)
        let isThere = file.offer(at: path) { warnings.append($0) }
        #expect(isThere && warnings.count == 1)
    }

    @Test("A gateway whose new origin was added before it moves is another gateway: nothing goes to the old one")
    func movedGateway() throws {
        var server = file
        server.resourceBase = "https://localhost:8444"
        var edited = server
        edited.resources.append(.init(origin: "https://localhost:9444", credential: "accessToken"))
        try put(edited.yaml)
        #expect(try !server.write(to: path))
        server.resources = [.init(origin: "https://localhost:9444", credential: "accessToken")]
        server.resourceBase = "https://localhost:9444"
        #expect(try server.write(to: path))
        #expect(try ClientFile.load(path).resources == server.resources)
        #expect(try ClientFile.load(path).resourceBase == "https://localhost:9444")
    }

    @Test("Where paths were led to the gateway's new address before it moved, nothing goes to the old one either")
    func movedGatewayWithBase() throws {
        var server = file
        (server.resourceBase, server.lastGateway) = ("https://localhost:8444", .at("https://localhost:8444"))
        var edited = server
        edited.resources.append(.init(origin: "https://localhost:9444", credential: "accessToken"))
        edited.resourceBase = "https://localhost:9444"
        try put(edited.yaml)
        server.resources = [.init(origin: "https://localhost:9444", credential: "accessToken")]
        (server.resourceBase, server.lastGateway) = ("https://localhost:9444", .at("https://localhost:9444"))
        #expect(try server.write(to: path))
        #expect(try ClientFile.load(path) == server)
    }

    @Test("Origins stay at a server without a gateway, unless a base may be that of a gateway that is no longer there")
    func withoutGateway() throws {
        let pins = try Self.pins(2)
        var server = file
        server.resources = []
        var edited = server
        edited.resources = [.init(origin: "https://api.example", credential: "accessToken")]
        edited.pins = [.init(host: "api.example", pins: pins)]
        try put(edited.yaml)
        #expect(try !server.write(to: path))
        server.cookieName = "other"
        #expect(try server.write(to: path))
        edited.cookieName = "other"
        #expect(try ClientFile.load(path) == edited)
        edited.resourceBase = "https://api.example/v1"
        try put(edited.yaml)
        #expect(try server.write(to: path))
        #expect(try ClientFile.load(path) == server)
    }

    @Test("Where a server never had a gateway a base stays, too, until it has one; nothing goes to one that is gone")
    func withoutGatewayAndWithBase() throws {
        var server = file
        (server.resources, server.lastGateway) = ([], .missing)
        #expect(try server.write(to: path))
        #expect(try !server.write(to: path))
        var edited = server
        edited.resources = [.init(origin: "https://api.example", credential: "accessToken")]
        edited.resourceBase = "https://api.example/v1"
        edited.pins = [.init(host: "api.example", pins: try Self.pins(2))]
        try put(edited.yaml)
        #expect(try !server.write(to: path))
        server.journey = "Other"
        #expect(try server.write(to: path))
        edited.journey = "Other"
        #expect(try ClientFile.load(path) == edited)

        var other = server
        (other.resources, other.resourceBase) = (file.resources, "https://localhost:8444")
        other.lastGateway = .at("https://localhost:8444")
        for now in [other, server] {
            #expect(try now.write(to: path))
            #expect(try ClientFile.load(path) == now)
        }
        // Also where an operator has taken the base away.
        other.resourceBase = nil
        try put(other.yaml)
        #expect(try server.write(to: path))
        #expect(try ClientFile.load(path) == server)
    }

    @Test("Beside a trust file the address of the resources follows a gateway that moves, unless it led elsewhere")
    func movedGatewayBesideTrust() throws {
        var server = file
        (server.resourceBase, server.lastGateway) = ("https://localhost:8444", .at("https://localhost:8444"))
        var moved = server
        moved.resources = [.init(origin: "https://localhost:9444", credential: "accessToken")]
        (moved.resourceBase, moved.lastGateway) = ("https://localhost:9444", .at("https://localhost:9444"))
        var gone = server
        (gone.resources, gone.resourceBase, gone.lastGateway) = ([], nil, .missing)
        for (base, follows) in [("https://localhost:8444/v1", true), ("https://api.example/v1", false)] {
            var edited = server
            (edited.trust, edited.resources, edited.resourceBase) = ("/etc/bank.jws", [], base)
            for now in [server, moved, gone] {
                try put(edited.yaml)
                let hasFollowed = follows && now != server
                // Where the address stays, there is nothing new for clients.
                let isNews = try now.write(to: path)
                #expect(isNews == hasFollowed)
                edited.lastGateway = now.lastGateway
                if hasFollowed { edited.resourceBase = now.resourceBase }
                #expect(try ClientFile.load(path) == edited)
                (edited.lastGateway, edited.resourceBase) = (server.lastGateway, base)
            }
        }
    }

    @Test("Beside a trust file the address of the resources comes back with a gateway that was missing for a start")
    func returnedGatewayBesideTrust() throws {
        var server = file
        (server.resourceBase, server.lastGateway) = ("https://localhost:8444", .at("https://localhost:8444"))
        var gone = server
        (gone.resources, gone.resourceBase, gone.lastGateway) = ([], nil, .missing)
        var edited = server
        (edited.trust, edited.resources) = ("/etc/bank.jws", [])
        try put(edited.yaml)
        for (now, base) in [(gone, nil), (server, "https://localhost:8444")] as [(ClientFile, String?)] {
            #expect(try now.write(to: path))
            #expect(try ClientFile.load(path).resourceBase == base)
        }
        // Where there was a gateway all the time, it is the operator who has taken the address away.
        edited.resourceBase = nil
        try put(edited.yaml)
        #expect(try !server.write(to: path))
        #expect(try ClientFile.load(path) == edited)
    }

    @Test("Where the gateway was is read as it was written, and what is not an address is refused")
    func lastGateway() throws {
        var file = file
        for gateway in [nil, .missing, .at("https://localhost:8444")] as [ClientFile.ServedGateway?] {
            file.lastGateway = gateway
            #expect(try ClientFile.parse(file.yaml, file: "client.yaml") == file)
        }
        let text = self.file.yaml + "lastGateway: nowhere\n"
        let error = #expect(throws: ConfigurationError.self) { try ClientFile.parse(text, file: "client.yaml") }
        #expect(error?.message.contains("assent serve") == true, "\(error as Any)")
    }

    @Test("What an operator wrote stays when the server's certificate comes without its issuer's for a while")
    func keptWithoutBackup() throws {
        let pins = try Self.pins(3)
        var server = file
        server.pins = [.init(host: "localhost", pins: [pins[0], pins[1]])]
        var edited = server
        // RFC 7748 §6.1: Alice's.
        edited.payloadEncryption = [
            .init(origin: "https://localhost:8444", keys: ["hSDwCYkwp1R0i33ctD73Wg2_Og0mOBr066SpjqqbTmo"])
        ]
        try put(edited.yaml)
        server.pins = [.init(host: "localhost", pins: [pins[2]])]
        #expect(try server.write(to: path))
        #expect(throws: ConfigurationError.self) { try ClientFile.load(path) }
        #expect(try !server.write(to: path))
        server.pins = [.init(host: "localhost", pins: [pins[2], pins[1]])]
        #expect(try server.write(to: path))
        edited.pins = server.pins
        #expect(try ClientFile.load(path) == edited)
        #expect(!FileManager.default.fileExists(atPath: path + ".old"))
    }

    @Test("Pins stay by host and port and at an issuer elsewhere; those of the server's own host and port do not")
    func keptPins() throws {
        let pins = try Self.pins(4)
        var server = file
        server.pins = [.init(host: "localhost", pins: [pins[0], pins[1]])]
        var edited = server
        // Another service on the same machine has a certificate of its own.
        edited.resources.append(.init(origin: "https://localhost:9000", credential: "accessToken"))
        edited.resources.append(.init(origin: "https://API.example:9443", credential: "nothing"))
        let others = [
            ClientFile.HostPins(host: "localhost:9000", pins: [pins[2], pins[3]]),
            ClientFile.HostPins(host: "api.example:9443", pins: [pins[1], pins[2]]),
        ]
        edited.pins += others
        // It would go before the server's own pins, also after those have changed.
        edited.pins.append(.init(host: "localhost:8443", pins: [pins[0], pins[1]]))
        edited.pins.append(.init(host: "unused.example", pins: [pins[0], pins[1]]))
        try put(edited.yaml)
        server.pins = [.init(host: "localhost", pins: [pins[3], pins[1]])]
        #expect(try server.write(to: path))
        #expect(try ClientFile.load(path).pins == server.pins + others)
        #expect(try !server.write(to: path))

        // An issuer elsewhere is called for tokens, and where its keys are only it says.
        edited.pins =
            server.pins + [
                .init(host: "login.example", pins: [pins[0], pins[1]]),
                .init(host: "keys.example", pins: [pins[2], pins[3]]),
            ]
        edited.issuer = "https://login.example/tenant"
        try put(edited.yaml)
        server.pins = [.init(host: "localhost", pins: [pins[2], pins[1]])]
        #expect(try server.write(to: path))
        #expect(try ClientFile.load(path).pins == server.pins + Array(edited.pins.dropFirst()))
        #expect(try !server.write(to: path))
    }

    @Test("An app's file keeps how its installations are named and admitted; what they may ask for the server says")
    func keptOfApp() throws {
        var server = file
        server.registration = .init(deviceScopes: ["app-data"])
        var edited = server
        edited.registration = .init(
            clientName: "Ana's laptop", softwareVersion: "3.2.0", deviceName: "laptop",
            initialAccessTokenFile: "/t/token", softwareStatementFile: "/t/a.jwt", deviceScopes: ["app-data"])
        try put(edited.yaml)
        #expect(try !server.write(to: path))
        server.registration = .init(deviceScopes: ["more"], remembersUsers: true, implicitScopes: ["greeting"])
        #expect(try server.write(to: path))
        edited.registration?.deviceScopes = ["more"]
        edited.registration?.remembersUsers = true
        edited.registration?.implicitScopes = ["greeting"]
        #expect(try ClientFile.load(path) == edited)
    }

    @Test(
        "A mistake is refused with its line",
        arguments: [
            ("server: x\nclient: {id: a, redirectURI: b, scope: [c]}\n", "client.yaml:2: client.scope: unknown key"),
            ("server: x\n", "client.yaml:1: client: is missing"),
            (
                "server: x\nclient: {id: a, redirectURI: b}\nresources:\n  https://a: everything\n",
                "client.yaml:4: resources.https://a: must be accessToken, session, both, nothing or"
            ),
            (
                "server: x\nclient: {id: a, redirectURI: b}\npins:\n  a:\n    - 47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n",
                "client.yaml:4: pins.a: This pin is the SHA-256 of nothing."
            ),
            (
                "server: x\nclient: {id: a, redirectURI: b}\npins:\n  a:\n    - \(Self.pin)\n",
                "client.yaml:4: pins.a: needs two different pins and has 1: with one, a new key locks everybody out"
            ),
            (
                "server: x\nclient: {id: a, redirectURI: b}\npins: {a: [\(Self.pin), \(Self.other)]}\nsinglePin:\n  a: \(Self.pin)\n",
                "client.yaml:5: singlePin.a: is under pins already"
            ),
            (
                "server: x\nclient: {id: a, redirectURI: b}\nsinglePin:\n  a: [\(Self.pin)]\n",
                "client.yaml:4: singlePin.a: must be a text"
            ),
        ])
    func mistakes(text: String, message: String) {
        let error = #expect(throws: ConfigurationError.self) { try ClientFile.parse(text, file: "client.yaml") }
        #expect(error?.description.hasPrefix(message) == true, "\(error?.description ?? "")")
    }

    @Test("A relative authority is looked for beside the file, wherever the program runs")
    func relativeAuthority() throws {
        let directory = NSTemporaryDirectory() + "/assent-client-" + SystemRandom().uuid()
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        for (written, read) in [("ca.pem", "/ca.pem"), ("../ca.pem", ""), ("/etc/ca.pem", "")] {
            var file = file
            file.authority = written
            let path = directory + "/client.yaml"
            try Data(file.yaml.utf8).write(to: URL(fileURLWithPath: path))
            let found = try #require(try ClientFile.load(path).authority)
            #expect(found.hasPrefix("/") && !found.contains(".."))
            #expect(found.hasSuffix(written.hasPrefix("/") ? written : "ca.pem"))
            if !read.isEmpty {
                #expect(found == URL(fileURLWithPath: directory).standardizedFileURL.path + read)
            }
        }
    }

    @Test("A missing file says which file is wanted")
    func missing() {
        let error = #expect(throws: ConfigurationError.self) { try ClientFile.load("/nowhere/client.yaml") }
        #expect(error?.message.contains("assent login --config") == true)
    }

    @Test("Configuration and state go where XDG says, and a relative path is ignored")
    func places() {
        let set = Places(environment: ["HOME": "/home/ana", "XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "s"])
        #expect(set.configurationFile(profile: "work") == "/c/assent/work.yaml")
        #expect(set.vault(profile: "work") == "/home/ana/.local/state/assent/work")
    }

    @Test("A pending request survives the command line")
    func pending() {
        for request in [
            PendingRequest(transactionID: "t-1", idempotencyKey: "k:2"),
            PendingRequest(transactionID: "t", idempotencyKey: nil),
        ] { #expect(PendingRequest(argument: request.argument) == request) }
    }
}
