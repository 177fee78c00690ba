import AssentCore
import AssentServer
import Foundation
import TestSupport
import Testing

@testable import AssentCLI
@testable import AssentDemo

@Suite("What reaches the disk when somebody signs in")
struct VaultSyncTests {
    private static var canTrace: Bool {
        get async throws {
            guard FileManager.default.isExecutableFile(atPath: "/usr/bin/strace") else { return false }
            let process = try SpawnedProcess(
                "/usr/bin/strace", ["-qq", "-o", "/dev/null", "/bin/true"], environment: [:], input: .nothing)
            return await process.ended() == 0
        }
    }

    @Test(
        "assent login has the vault's file, its key and their directories on the disk when it ends",
        .enabled("processes cannot be traced here") { try await canTrace })
    func login() async throws {
        try await Typist.run { typist in
            let trace = typist.program.home + "/trace"
            let running = try typist.program.start(
                ["login", "--config", typist.program.clientFile], typing: true,
                under: ["/usr/bin/strace", "-f", "-qq", "-y", "-e", "trace=fsync,fdatasync", "-o", trace])
            try running.type([
                typist.world.account.username, typist.world.account.password.reveal(), try typist.code(),
            ])
            try running.endInput()
            let result = await running.result()
            #expect(result.status == 0, "\(result.errors)")
            let synced = Set(SyncTrace.synced(in: try String(contentsOfFile: trace, encoding: .utf8)))
            let state = URL(fileURLWithPath: typist.program.home + "/state").resolvingSymlinksInPath().path
            let kept = synced.filter { $0.hasPrefix(state) }
            // A file is written beside its place and moved there, so it has had another name.
            var isDirectory: ObjCBool = false
            let directories = kept.filter {
                FileManager.default.fileExists(atPath: $0, isDirectory: &isDirectory) && isDirectory.boolValue
            }
            #expect(kept.count > directories.count && !directories.isEmpty, "\(synced.sorted())")
            for directory in directories {
                #expect(kept.contains { $0.hasPrefix(directory + "/") }, "\(directory): \(kept.sorted())")
            }
        }
    }
}
