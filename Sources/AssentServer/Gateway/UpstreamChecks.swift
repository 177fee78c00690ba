import AssentCore
import Foundation
import ServiceLifecycle

/// Asks services whether they are well, as often as their routes say.
struct UpstreamChecks: Service {
    let upstream: Upstream
    let clock: any WallClock

    func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                await upstream.check()
                do { try await clock.sleep(until: clock.now.addingTimeInterval(1)) } catch { return }
            }
        }
    }
}
