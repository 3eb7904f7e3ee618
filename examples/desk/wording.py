"""What customers write. ``{sku}``, ``{city}``, ``{qty}`` and the like are filled in by examples.desk.jobs."""

STOCK_ONE = (
    "How many {sku} do you have in {city}?",
    "hi, quick one: stock of {sku} in {city} please",
    "Could you check {sku} for me? I am in {city}.",
    "Is {sku} available in {city}, and how many pieces?",
    "Customer at the counter wants {sku}. What is in {city} right now?",
    "stock {sku} {city}",
    "Please look up how many units of {sku} are on the shelf in {city}.",
    "My colleague asked about {sku} ({city}). How many are there?",
)
STOCK_ONE_ZH = (
    "请问 {sku} 还有多少库存？",
    "帮我查一下{sku}的库存",
    "{sku} 现在有几件？急用，谢谢！",
)

BOOK_ONE = (
    "Please book {qty} of {sku} for me.",
    "I need {qty} x {sku}, can you reserve them?",
    "Put {qty} pieces of {sku} aside for us, thanks!",
    "book {sku}, {qty} pcs",
    "We take {qty} of the {sku}. Go ahead.",
    "Hello, this is the bike shop. {qty} units of {sku} please, same account.",
)
BOOK_ONE_ZH = (
    "请帮我订 {qty} 件 {sku}",
    "你好，{sku} 要 {qty} 件，麻烦预订一下",
)

STOCK_SEVERAL = (
    "I need the numbers for {skus} before noon. One line each, please.",
    "Stock check for the weekly sheet: {skus}. All of them, they are easy to mix up.",
    "Compare {skus} for me: how many of each?",
)
STOCK_TWO_CITIES = (
    "Ticket 2025-118, shelf HZ-2210: the customer wants {sku}. How many in {city}, and how many in {other}?",
    "How many {sku} are there in {city}, and are any in {other}? The box carries the label LOT-88412.",
)
STOCK_TWO_KINDS = (
    "For the trade fair we want {sku} and the stand {stand}. What do you have of both?",
    "Can you tell me the stock of {stand} and of {sku}? They go out with order 2025-331.",
)
STOCK_NOT_THAT = (
    "We got {decoy} last week by mistake. It is {sku} that we sell: how many of those in {city}?",
    "Last time somebody looked up {decoy}. Please give me the stock of {sku} in {city}.",
)
STOCK_UNNAMED = (
    "Do you still have the one we talked about yesterday, in {city}?",
    "上次说的那个型号，现在还有多少？",
)

BOOK_SEVERAL = (
    "Big order: {orders}. Book all of it, please.",
    "For the new branch we need {orders}. Please reserve every line.",
)
BOOK_CHECKED = (
    "Order 2025-407, dock HZ-2210: first check that {sku} is there in {city}, then book {qty} of it.",
    "Check {sku} in {city} for me, and book {qty} pieces if there are enough. Our reference is LOT-88412.",
)
BOOK_INSTEAD = (
    "Please cancel our booking of {stand}. The customer takes {qty} of {sku} now, book those.",
    "Change of plan: drop the {stand} booking and reserve {qty} x {sku}.",
)
BOOK_NOT_THAT = (
    "The last delivery was {decoy}, which is wrong for us. The drawing says {sku}: book {qty}.",
    "I said {decoy} on the phone, sorry! Book {qty} of {sku}.",
)
BOOK_ALL = (
    "How many {sku} are left in {city}? Book the whole lot for us.",
    "We clear the shelf: look up {sku} and book every piece you have.",
)
BOOK_UNNAMED = (
    "Book {qty} of the one we talked about, please.",
    "老样子，上次那款再订 {qty} 件",
)
