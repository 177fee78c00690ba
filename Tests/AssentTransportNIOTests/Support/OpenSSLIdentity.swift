import Foundation
import NIOSSL
import TestSupport
import Testing

/// A server with RSA keys, minted by openssl because swift-crypto rightly makes no such keys and signatures.
struct OpenSSLIdentity {
    enum Kind: CaseIterable { case strong, sha1, md5, rsa1024 }

    let root: [UInt8]
    let server: TestPKI.Server

    init(_ kind: Kind) throws {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        func file(_ name: String) -> String { directory.appendingPathComponent(name).path }
        func text(_ name: String) throws -> String { try String(contentsOfFile: file(name), encoding: .utf8) }

        try "subjectAltName=DNS:localhost\nextendedKeyUsage=serverAuth\n"
            .write(toFile: file("extensions"), atomically: true, encoding: .utf8)
        try Self.run(
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", file("root.key"), "-out", file("root.pem"),
            "-days", "7300", "-subj", "/CN=rsa", "-sha256", "-addext", "keyUsage=critical,keyCertSign")
        try Self.run(
            "req", "-newkey", kind == .rsa1024 ? "rsa:1024" : "rsa:2048", "-nodes", "-keyout", file("server.key"),
            "-out", file("request"), "-subj", "/CN=server")
        let digest =
            switch kind {
            case .sha1: "-sha1"
            case .md5: "-md5"
            default: "-sha256"
            }
        try Self.run(
            "x509", "-req", "-in", file("request"), "-CA", file("root.pem"), "-CAkey", file("root.key"),
            "-set_serial", "1", "-days", "7000", digest, "-extfile", file("extensions"), "-out", file("server.pem"))
        root = Array(try text("root.pem").utf8)
        server = TestPKI.Server(
            chain: [], keyPEM: try text("server.key"),
            raw: try NIOSSLCertificate.fromPEMBytes(Array(text("server.pem").utf8)).map { try $0.toDERBytes() })
    }

    private static func run(_ arguments: String...) throws {
        let done = try FinishedProcess.run("/usr/bin/env", ["openssl"] + arguments)
        try #require(done.status == 0, "openssl \(arguments.joined(separator: " ")): \(done.complaints)")
    }
}
