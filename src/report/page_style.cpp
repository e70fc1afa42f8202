#include "report/page_style.h"

namespace stretto::report {

std::string_view page_style() {
  return R"css(
:root{color-scheme:light dark;
--page:#f7f6f3;--card:#fff;--edge:#e6e3dc;--grid:#eeece6;--ink:#1d1c1a;--soft:#6d6860;--faint:#857f75;
--ink1:#3355d6;--ink2:#c8590c;--ink3:#12805c;--good:#12805c;--warn:#a86200;--cell:51,85,214;
--zero:#f3f3f7;--shadow:0 1px 2px rgba(40,34,20,.05),0 4px 16px rgba(40,34,20,.04)}
@media(prefers-color-scheme:dark){:root{
--page:#121317;--card:#1a1c22;--edge:#2a2d36;--grid:#262932;--ink:#eceae5;--soft:#a3a2a6;--faint:#8b8c94;
--ink1:#8ba5ff;--ink2:#ffa154;--ink3:#56cf9f;--good:#56cf9f;--warn:#f3b549;--cell:139,165,255;
--zero:#20232b;--shadow:none}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%}
body{margin:0;background:var(--page);color:var(--ink);
font:15px/1.55 ui-sans-serif,system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue","Liberation Sans",Arial,sans-serif;
font-variant-numeric:tabular-nums}
main{max-width:1160px;margin:0 auto;padding:44px 28px 72px}
h1,h2{font-family:ui-serif,"Iowan Old Style","Palatino Linotype",Charter,Georgia,"Liberation Serif",serif;
font-weight:600;letter-spacing:-.012em;text-wrap:balance}
h1{font-size:36px;line-height:1.15;margin:0;overflow-wrap:anywhere}
h2{font-size:22px;margin:52px 0 16px}
h3{font-size:14px;font-weight:600;margin:0}
.over{font-size:12px;letter-spacing:.13em;text-transform:uppercase;color:var(--faint);margin:0 0 10px}
.head{display:flex;flex-wrap:wrap;align-items:center;gap:12px 18px}
.pill{display:inline-flex;align-items:center;gap:8px;padding:4px 13px 4px 11px;border-radius:99px;
font-size:13px;font-weight:600;color:var(--tone);border:1px solid currentColor;max-width:100%;overflow-wrap:anywhere}
.pill i{flex:none;width:8px;height:8px;border-radius:50%;background:currentColor}
.running{--tone:var(--ink1)}.finished{--tone:var(--good)}.stopped{--tone:var(--warn)}
.running i{animation:pulse 1.8s ease-in-out infinite}
@keyframes pulse{50%{opacity:.25}}
@media(prefers-reduced-motion:reduce){.running i{animation:none}}
.bar{height:5px;border-radius:9px;background:var(--edge);margin:24px 0 0;overflow:hidden}
.bar i{display:block;height:100%;border-radius:9px;background:var(--ink1)}
.tiles{display:grid;grid-template-columns:repeat(6,1fr);margin:24px 0 0;padding:0;overflow:hidden}
.tiles div{padding:16px 18px 15px;box-shadow:-1px -1px 0 var(--edge)}
.tiles dt{font-size:12.5px;color:var(--soft)}
.tiles dd{margin:3px 0 0;font-size:25px;line-height:1.2;font-weight:600;letter-spacing:-.02em;white-space:nowrap}
.tiles small{display:block;margin-top:3px;font-size:12px;line-height:1.35;font-weight:400;letter-spacing:0;
color:var(--faint);white-space:normal}
.card{background:var(--card);border:1px solid var(--edge);border-radius:12px;box-shadow:var(--shadow)}
.charts{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:18px;margin-top:18px}
figure{margin:0;padding:15px 14px 10px 16px;min-width:0;display:flex;flex-direction:column}
figure>svg{margin-top:auto}
figcaption{display:flex;flex-wrap:wrap;align-items:center;gap:2px 14px;margin:0 4px 8px 2px}
figcaption b{margin-left:auto;font-weight:400;font-size:13px;color:var(--soft)}
.key{display:inline-flex;align-items:center;gap:6px;font-size:12.5px;color:var(--soft)}
.key i{width:14px;height:3px;border-radius:2px;background:var(--c)}
svg{display:block;width:100%;height:auto}
svg text{font:11px ui-sans-serif,system-ui,-apple-system,"Segoe UI",Roboto,"Liberation Sans",Arial,sans-serif;
font-variant-numeric:tabular-nums;fill:var(--soft)}
.ink1{--c:var(--ink1)}.ink2{--c:var(--ink2)}.ink3{--c:var(--ink3)}
.grid{stroke:var(--grid);fill:none}.axis{stroke:var(--edge);fill:none}
.raw,.line{fill:none;stroke:var(--c);stroke-linejoin:round;stroke-linecap:round}
.raw{stroke-width:1;opacity:.26}.line{stroke-width:1.9}
.band{fill:var(--c);opacity:.13}
.dot{fill:var(--c);stroke:var(--card);stroke-width:1.2}
.hover rect{fill:transparent}
.hover path{stroke:var(--faint);stroke-dasharray:2 3}
.hover path,.hover circle{opacity:0;pointer-events:none}
.hover:hover path,.hover:hover circle{opacity:1}
.none{color:var(--faint);margin:56px 0 66px;text-align:center;font-size:14px}
.sample{padding:20px 22px;margin-top:18px;display:grid;grid-template-columns:minmax(0,1fr) auto;gap:20px 36px}
.sample dl{margin:0;align-self:center;min-width:0}
.sample dt{font-size:12px;color:var(--faint);margin-top:14px}.sample dt:first-child{margin-top:0}
.sample dd{margin:1px 0 0;font-size:16.5px;line-height:1.45;overflow-wrap:anywhere;
font-family:ui-serif,"Iowan Old Style","Palatino Linotype",Charter,Georgia,"Liberation Serif",serif}
.sample dd.out{font-weight:600;color:var(--ink1)}
.sample dd small{font:12px/1.4 ui-sans-serif,system-ui,sans-serif;font-weight:400;color:var(--faint)}
.sample dd.text{font-size:15px;line-height:1.6}
.sample mark{background:none;color:inherit;border-radius:3px;padding:0 1px}
.sample mark.ref{box-shadow:inset 0 -2px 0 var(--ink3)}
.sample mark.out{background:rgba(var(--cell),.16);font-weight:600;color:var(--ink1)}
.sample>div{min-width:0;max-width:600px}
.media{padding:0;grid-column:1/-1;gap:12px}
.media figcaption{display:block;margin:0;font-size:16.5px;overflow-wrap:anywhere}
.media small{font-size:12px;color:var(--faint)}
.media audio{width:100%;max-width:560px}
.media img{max-width:100%;max-height:420px;align-self:flex-start;border-radius:6px}
.matrix{border-collapse:separate;border-spacing:2px;font-size:13px;display:block;overflow-x:auto}
.matrix caption{text-align:left;font-weight:600;padding-bottom:10px}
.matrix th,.matrix td{width:auto;border:0;padding:3px 8px;white-space:nowrap}
.matrix th{color:var(--faint)}.matrix td{text-align:right;font-variant-numeric:tabular-nums}
.matrix thead th{text-align:right}.matrix thead span{display:block;width:9ch;overflow:hidden;text-overflow:ellipsis}
.matrix td.own{font-weight:600}
.scroll{overflow-x:auto;max-width:100%}
.heat{width:auto;height:auto;max-width:none}
.heat text{font-size:12px;font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
.heat rect,.heat path{fill:rgb(var(--cell))}
.heat .a0{fill:var(--zero)}
.a1{fill-opacity:.12}.a2{fill-opacity:.2}.a3{fill-opacity:.29}.a4{fill-opacity:.38}.a5{fill-opacity:.48}
.a6{fill-opacity:.58}.a7{fill-opacity:.69}.a8{fill-opacity:.8}.a9{fill-opacity:.9}
.heat rect:hover{stroke:var(--ink);stroke-width:1.2}
.note{font-size:12.5px;color:var(--faint);margin:8px 0 0}
.charts+.note{margin:12px 2px 0}
.notes th{width:1%;white-space:nowrap}
.pair{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:18px;align-items:start}
.pair h2{margin-bottom:16px}
table{width:100%;border-collapse:collapse;font-size:14px}
td,th{padding:8px 18px;text-align:left;font-weight:400;vertical-align:top;border-top:1px solid var(--grid)}
tr:first-child>*{border-top:0}
th{color:var(--soft);width:36%}td{overflow-wrap:anywhere}
.list thead th{font-size:12.5px;color:var(--faint);width:auto;background:var(--card);position:sticky;top:0}
.list td,.list th{text-align:right;white-space:nowrap}
.list .best td{color:var(--good);font-weight:600}
.table{overflow:auto;max-height:420px}
pre{margin:0;padding:18px 20px;overflow:auto;max-height:560px;tab-size:2;
font:13px/1.6 ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
pre .s{color:var(--ink2);font-weight:600}pre .k{color:var(--ink1)}pre .v{color:var(--ink3)}
pre .n{color:var(--ink)}pre .c{color:var(--faint);font-style:italic}
footer{margin-top:52px;font-size:12.5px;color:var(--faint)}
@media(max-width:1000px){.tiles{grid-template-columns:repeat(3,1fr)}.sample{grid-template-columns:minmax(0,1fr)}}
@media(max-width:760px){main{padding:28px 14px 48px}.charts,.pair{grid-template-columns:minmax(0,1fr)}
.pair{gap:0}h1{font-size:28px}h2{margin-top:40px}figure{padding:13px 8px 8px 10px}.sample{padding:16px}
td,th{padding:7px 12px}}
@media(max-width:520px){.tiles{grid-template-columns:repeat(2,1fr)}.tiles div{padding:13px 14px}.tiles dd{font-size:21px}}
@media print{.card{break-inside:avoid;box-shadow:none}pre,.table{max-height:none}}
)css";
}

}  // namespace stretto::report
