import AssentDemo
import Foundation

extension DemoWorld.Sources {
    /// A configuration to run, with apps that know the server by a client's file.
    init(configurationFile: String, programs: URL) {
        self.init(configurationFile: configurationFile, programs: programs) { endpoints, configuration in
            ClientFile(endpoints: endpoints, configuration: configuration).map { file in
                DemoWorld.App(file: file.yaml) { file.configuration(vault: $0) }
            }
        }
    }
}

extension Console: Narrator {
    func styled(_ text: String, as style: NarrationStyle) -> String {
        switch style {
        case .title: styled(text, .bold)
        case .aside: styled(text, .dim)
        case .refused: styled(text, .yellow)
        case .reason: styled(text, .cyan)
        case .passed: styled(text, .green)
        case .failed: styled(text, .red)
        }
    }
}
