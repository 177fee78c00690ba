import AssentCore
import NIOCore
import Testing

@testable import AssentTransportNIO

@Suite("Which addresses a transport connects to")
struct AddressRuleTests {
    @Test(
        "Addresses of this machine and of private networks, in whatever form, are not public",
        arguments: [
            "0.0.0.0", "10.0.0.1", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.255.255", "169.254.169.254",
            "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.2.1", "192.88.99.1", "192.168.0.1", "198.18.0.1",
            "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1",
            "255.255.255.255", "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::10.0.0.1",
            "64:ff9b:1::1", "100::1", "2001::1", "2001:db8::1", "2002:7f00:1::1", "3fff::1", "fc00::1", "fd00::1",
            "fe80::1", "fec0::1", "ff02::1", "4000::1",
        ])
    func closed(address: String) throws {
        #expect(try !AddressRule.isPublic(SocketAddress(ipAddress: address, port: 443)))
    }

    @Test(
        "Addresses of the Internet are, up to the edges of the others",
        arguments: [
            "1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0",
            "169.253.255.255", "172.15.255.255", "172.32.0.0", "192.167.255.255", "192.169.0.0", "198.17.255.255",
            "198.20.0.0", "223.255.255.255", "2001:200::1", "2606:4700:4700::1111", "2a00::1", "::ffff:1.1.1.1",
            "64:ff9b::1.1.1.1",
        ])
    func open(address: String) throws {
        #expect(try AddressRule.isPublic(SocketAddress(ipAddress: address, port: 443)))
    }

    @Test("A name or an address that leads to this machine is refused before a connection is opened")
    func refused() async throws {
        let root = try TestPKI.root()
        let identity = try TestPKI.server(under: root)
        let server = try await TestServer.tls { _ in identity }
        for host in ["localhost", "127.0.0.1", "[::ffff:127.0.0.1]"] {
            let transport = try makeTransport(roots: [root], pins: ["\(host):\(server.port)": .unpinned]) {
                $0.addressRule = AddressRule()
            }
            let failure = await transport.failure(.to(server.port, host: host))
            #expect(failure?.code == .addressRefused, "\(host): \(String(describing: failure))")
            #expect(failure?.mayHaveHadEffect == false)
            await transport.shutdown()
        }
        #expect(server.seen.connections == 0)
        await server.stop()
    }

    @Test("A host that is named may be anywhere, and its name alone does not help another one")
    func exempt() async throws {
        let root = try TestPKI.root()
        let identity = try TestPKI.server(under: root)
        let server = try await TestServer.tls { _ in identity }
        let host = try NormalizedHost("localhost")
        let transport = try makeTransport(
            roots: [root],
            pins: ["localhost:\(server.port)": .unpinned, "127.0.0.1:\(server.port)": .unpinned]
        ) { $0.addressRule = AddressRule(exempt: [host]) }
        #expect(try await transport.text(.to(server.port)) == "ok")
        #expect(await transport.failure(.to(server.port, host: "127.0.0.1"))?.code == .addressRefused)
        await transport.shutdown()
        await server.stop()
    }

    @Test("A name without an address is said to have none")
    func unresolved() async throws {
        let transport = try makeTransport(roots: [try TestPKI.root()], pins: ["nowhere.invalid": .unpinned]) {
            $0.addressRule = AddressRule()
        }
        #expect(await transport.failure(.to(443, host: "nowhere.invalid"))?.code == .nameNotResolved)
        await transport.shutdown()
    }
}
