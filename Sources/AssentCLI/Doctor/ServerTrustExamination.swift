import AssentConfiguration
import AssentCore
import AssentServer
import AssentTrust

/// Compares a trust file with the file of a server or of a gateway, and with the server's database.
struct ServerTrustExamination {
    /// The trust file.
    let trust: String

    /// The server's file or a gateway's.
    let config: String

    let clock: any WallClock

    /// The findings; of the server's file none where it cannot be read: others say why.
    func findings() async -> [Diagnosis] {
        let (file, alone) = TrustExamination(file: trust, clock: clock).read()
        guard let file else { return alone }
        if GatewayExamination.concerns(file: config) {
            guard let configuration = try? GatewayServerConfiguration.load(file: config) else { return alone }
            return alone + SealedRoutes(file: file).uncalled(configuration.gateway)
        }
        guard let configuration = try? ServerConfiguration.load(file: config) else { return alone }
        return alone + (await ServerTrustComparison(file: file, configuration: configuration, clock: clock).findings())
    }
}
