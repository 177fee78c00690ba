import AssentCore
import AssentOTP
import Foundation
import TestSupport
import Testing

/// OATH Toolkit as a second opinion.
@Suite("One-time passwords against oathtool", .enabled(if: Oathtool.mustRun, "oathtool is not installed"))
struct OathtoolTests {
    static let combinations = OTPAlgorithm.allCases.flatMap { algorithm in [6, 7, 8].map { (algorithm, $0) } }

    @Test("TOTP", arguments: combinations)
    func totp(algorithm: OTPAlgorithm, digits: Int) throws {
        let random = SystemRandom()
        for length in [10, 20, 33, 64, 128, 200] {
            let secret = random.bytes(length)
            let totp = try TOTP(secret: Secret(bytes: secret), algorithm: algorithm, digits: digits, period: 45)
            let time = Int64.random(in: 0..<4_000_000_000)
            let output = try Oathtool.run([
                "--totp=\(algorithm.rawValue.lowercased())", "--digits=\(digits)", "--time-step-size=45s",
                "--now=@\(time)",
                Hex.encode(secret),
            ])
            #expect(totp.code(at: Date(timeIntervalSince1970: TimeInterval(time))) == output)
        }
    }

    @Test("HOTP", arguments: [0, 1, 255, 256, UInt64(UInt32.max), UInt64(Int64.max)])
    func hotp(counter: UInt64) throws {
        let secret = SystemRandom().bytes(20)
        let output = try Oathtool.run(["--hotp", "--base32", "--counter=\(counter)", Base32.encode(secret)])
        #expect(try HOTP(secret: Secret(bytes: secret)).code(counter: counter) == output)
    }
}

enum Oathtool {
    private static let path = "/usr/bin/oathtool"

    /// In CI the program must be there: a missing one fails the tests instead of skipping them.
    static var mustRun: Bool {
        FileManager.default.isExecutableFile(atPath: path) || ProcessInfo.processInfo.environment["CI"] != nil
    }

    static func run(_ arguments: [String]) throws -> String {
        let done = try FinishedProcess.run(path, arguments)
        try #require(done.status == 0, "\(done.complaints)")
        return done.text.trimmingCharacters(in: .whitespacesAndNewlines)
    }
}
